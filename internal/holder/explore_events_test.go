package holder

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An event can happen next in a world.
type event struct {
	kind kind
	who  uint8
	arg  uint8 // the number of the packet, call, context, ID or period
}

type kind uint8

const (
	_ kind = iota

	// The following events belong to a holder.
	evAcquire
	evRelease
	evClose
	evReleaseUncertain
	evWait
	evDisclose
	evHandOver
	evCancel
	evBind
	evUnbind
	evStall     // the work makes no progress
	evHoldUntil // the lease is held for two seconds after the work
	evRead
	evWake

	// The following events belong to a packet.
	evExchange  // the authority decides the request, and the answer arrives
	evDeliver   // the authority decides the request
	evAnswer    // the answer arrives
	evSilence   // the authority decides the request, and the answer is lost
	evLose      // the request is lost
	evDelay     // the outcome is unknown, and the request arrives later
	evArrive    // a delayed request arrives
	evStick     // the outcome is unknown, and the Do of the request does not return
	evReturn    // the Do of the request returns
	evDuplicate // the request will arrive once more
	evGarble    // the request is granted, and the answer shows the grant of another ID
	evCorrupt   // the request is granted, and the answer shows a record whose duration is zero
	evRefuse    // a renewal is granted, and the answer is a refusal that shows the own ID in force
	evBlank     // the request is decided, and the answer is ErrConflict without a record
	evWithhold  // the request is not sent, and the answer is ErrUnsent
	evPutOff    // a renewal that has waited is sent only now

	// The following events belong to the rival and the operator.
	evRival   // the rival acquires
	evRetreat // the rival releases
	evBreak
	evTick
)

var verbs = [...]string{
	evAcquire: "acquire", evRelease: "release", evClose: "close", evReleaseUncertain: "release-uncertain", evWait: "wait", evDisclose: "disclose",
	evHandOver: "hand-over", evCancel: "cancel", evBind: "bind", evUnbind: "unbind", evStall: "stalls", evHoldUntil: "holds-until", evRead: "reads", evWake: "wakes",
	evExchange: "exchange", evDeliver: "deliver", evAnswer: "answer", evSilence: "lose-answer", evLose: "lose", evDelay: "delay",
	evArrive: "arrive", evStick: "stick", evReturn: "return", evDuplicate: "duplicate", evGarble: "garble", evCorrupt: "corrupt",
	evRefuse: "refuse", evBlank: "blank", evWithhold: "withhold", evPutOff: "put-off",
	evRival: "rival acquire", evRetreat: "rival release", evBreak: "break", evTick: "tick",
}

// A kinds value is a set of kinds of events.
type kinds uint64

func of(all ...kind) (s kinds) {
	for _, k := range all {
		s |= 1 << k
	}
	return s
}

func (s kinds) has(k kind) bool { return s>>k&1 != 0 }

// events lists the events that can happen next in a world.
func (w *world) events(l []event) []event {
	l = l[:0]
	c := w.cfg
	for i := range c.holders {
		l = w.callsOf(i, l)
	}
	for i := range w.packets {
		l = w.fates(i, l)
	}
	if w.left.others > 0 {
		rec := w.rec.At(w.authorityNow())
		if c.world.has(evRival) && !rec.State.Locked() {
			l = append(l, event{kind: evRival})
		}
		if c.world.has(evRetreat) && rec.State.Locked() && rec.ID[0] == rivalsIDs {
			l = append(l, event{kind: evRetreat})
		}
		if c.world.has(evBreak) && rec.State.Locked() {
			for p := range c.periods {
				l = append(l, event{kind: evBreak, arg: uint8(p)})
			}
		}
	}
	if w.left.ticks > 0 {
		l = append(l, event{kind: evTick})
	}
	return l
}

func (w *world) callsOf(i int, l []event) []event {
	h, may := &w.h[i], w.cfg.calls[i]
	add := func(k kind, arg int) { l = append(l, event{k, uint8(i), uint8(arg)}) }
	if w.left.calls[i] > 0 {
		var n [OpWait + 1]int
		for _, c := range h.calls.slice() {
			n[c.op]++
		}
		canCall := !h.calls.full()
		if may.has(evAcquire) && canCall && n[OpAcquire] < w.cfg.together {
			add(evAcquire, 0)
		}
		if may.has(evRelease) && canCall && n[OpRelease] < w.cfg.together {
			add(evRelease, 0)
		}
		if may.has(evClose) && canCall && !h.closed {
			add(evClose, 0)
		}
		if may.has(evReleaseUncertain) && canCall && n[OpReleaseUncertain] == 0 {
			add(evReleaseUncertain, 0)
		}
		if may.has(evWait) && canCall && n[OpWait] == 0 {
			add(evWait, 0)
		}
		if may.has(evDisclose) && !h.disclosed.full() {
			add(evDisclose, 0)
		}
		if may.has(evHandOver) && canCall && n[OpHandOver] < w.cfg.together {
			to := w.receivers(i)
			for k := range to.n {
				add(evHandOver, int(k))
			}
		}
		if may.has(evCancel) {
			for k := range h.calls.n {
				add(evCancel, int(k))
			}
		}
		if may.has(evBind) && h.contexts.n < 2 && h.inc.alive {
			add(evBind, 0)
		}
	}
	for k := range h.contexts.n {
		add(evUnbind, int(k))
	}
	if may.has(evStall) && h.inc.alive && h.contexts.n > 0 {
		add(evStall, 0)
	}
	if may.has(evHoldUntil) && h.inc.alive {
		add(evHoldUntil, 0)
	}
	if may.has(evRead) && w.left.reads > 0 && h.inc.alive {
		add(evRead, 0)
	}
	if w.cfg.pauses && w.sleepy(i) {
		add(evWake, 0)
	}
	return l
}

// receivers returns the IDs to which a holder may hand its lease over. These are the IDs that the
// other holder has disclosed. If there is only one holder, it is an ID of the rival.
func (w *world) receivers(who int) (l list[lease.ID]) {
	if w.cfg.holders == 1 {
		l.add(lease.ID{rivalsIDs, 40})
		if h := &w.h[who]; h.inc.alive {
			l.add(h.inc.id)
		}
		return l
	}
	return w.h[1-who].disclosed
}

// fates lists the events that can happen to a packet.
func (w *world) fates(i int, l []event) []event {
	p, may := &w.packets[i], w.cfg.world
	add := func(k kind) { l = append(l, event{kind: k, arg: uint8(i)}) }
	if p.answered {
		if !p.applied {
			add(evArrive)
		}
		if p.stuck {
			add(evReturn)
		}
		return l
	}
	switch {
	case p.applied:
		add(evAnswer)
	case may.has(evDeliver):
		add(evDeliver)
	default:
		add(evExchange)
	}
	if w.left.faults == 0 {
		return l
	}
	for _, k := range []kind{evSilence, evStick} {
		if may.has(k) {
			add(k)
		}
	}
	if !p.applied {
		for _, k := range []kind{evLose, evDelay, evDuplicate, evBlank, evWithhold} {
			if may.has(k) {
				add(k)
			}
		}
		if p.Aim == AimAcquire || p.Aim == AimRenew {
			for _, k := range []kind{evGarble, evCorrupt} {
				if may.has(k) {
					add(k)
				}
			}
		}
		if p.Aim == AimRenew && may.has(evRefuse) {
			add(evRefuse)
		}
		if may.has(evPutOff) && w.mayPutOff(p) {
			add(evPutOff)
		}
	}
	return l
}

// do lets an event happen, and then checks the world.
func (w *world) do(e event) {
	who, i := int(e.who), int(e.arg)
	switch e.kind {
	case evAcquire, evRelease, evClose, evReleaseUncertain, evWait, evDisclose, evHandOver, evCancel, evBind:
		w.left.calls[who]--
	case evRead:
		w.left.reads--
	case evSilence, evLose, evDelay, evStick, evDuplicate, evGarble, evCorrupt, evRefuse, evBlank, evWithhold, evPutOff:
		w.left.faults--
	case evRival, evRetreat, evBreak:
		w.left.others--
	case evTick:
		w.left.ticks--
	}
	switch e.kind {
	case evAcquire:
		w.acquire(who)
	case evRelease:
		w.release(who, false)
	case evClose:
		w.release(who, true)
	case evReleaseUncertain:
		w.settle(who)
	case evWait:
		w.await(who)
	case evDisclose:
		w.disclose(who)
	case evHandOver:
		to := w.receivers(who)
		w.handOver(who, to.all[i])
	case evCancel:
		w.cancel(who, w.h[who].calls.all[i].number)
	case evBind:
		w.bind(who)
	case evUnbind:
		w.unbind(who, i)
	case evStall:
		w.stall(who)
	case evHoldUntil:
		w.holdUntil(who)
	case evRead:
		w.read(who)
	case evWake:
		w.wake(who)
	case evExchange:
		w.apply(&w.packets[i])
		w.answer(i)
	case evDeliver:
		w.apply(&w.packets[i])
	case evAnswer:
		w.answer(i)
	case evSilence:
		if !w.packets[i].applied {
			w.apply(&w.packets[i])
		}
		w.unknown(i, false, false)
	case evLose:
		w.unknown(i, false, false)
	case evDelay:
		w.unknown(i, true, false)
	case evArrive:
		w.arrive(i)
	case evStick:
		w.unknown(i, true, true)
	case evReturn:
		w.returns(i)
	case evDuplicate:
		p := w.packets[i]
		p.answered = true
		w.faulty = true
		w.packets = append(w.packets, p)
		w.note("%s will arrive twice", w.requestText(p.Request.Request))
	case evGarble, evCorrupt, evRefuse, evBlank:
		w.distort(e.kind, i)
	case evWithhold:
		w.packets[i].err, w.faulty = lease.ErrUnsent, true
		w.answer(i)
	case evPutOff:
		w.putOff(&w.packets[i])
	case evRival:
		w.rivals++
		w.third(lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{rivalsIDs, w.rivals}, Owner: w.cfg.rivalOwner, Duration: w.cfg.rivalDuration})
	case evRetreat:
		w.third(lease.Request{Action: lease.ActionRelease, ID: w.rec.ID})
	case evBreak:
		w.third(lease.Request{Action: lease.ActionBreak, Period: w.cfg.periods[i]})
	case evTick:
		w.pass()
	}
	w.checkSafe()
}

// arrive lets the authority decide a request for whose answer no call waits.
func (w *world) arrive(i int) {
	p := &w.packets[i]
	w.apply(p)
	if !p.stuck {
		w.drop(i)
	}
}

// distort lets the authority decide a request, and gives the machine a wrong answer.
func (w *world) distort(k kind, i int) {
	p := &w.packets[i]
	w.apply(p)
	w.faulty = true
	switch {
	case k == evBlank:
		p.res, p.err = lease.Result{}, lease.ErrConflict
	case p.err != nil:
	case k == evGarble:
		p.res.Record.ID = lease.ID{rivalsIDs, 41}
	case k == evCorrupt:
		p.res.Record.Duration = 0
	case k == evRefuse:
		p.err = lease.ErrIDMismatch
	}
	w.answer(i)
}

// --- Events as text

// text returns an event as interaction files write it.
func (w *world) text(e event) string {
	verb := verbs[e.kind]
	switch e.kind {
	case evAcquire, evRelease, evClose, evReleaseUncertain, evWait, evDisclose, evBind, evStall, evHoldUntil, evRead, evWake:
		return name(int(e.who)) + " " + verb
	case evHandOver:
		to := w.receivers(int(e.who))
		return name(int(e.who)) + " " + verb + " " + idName(to.all[e.arg])
	case evCancel:
		return fmt.Sprintf("%s %s %d", name(int(e.who)), verb, w.h[e.who].calls.all[e.arg].number)
	case evUnbind:
		return name(int(e.who)) + " " + verb + " " + idName(w.h[e.who].contexts.all[e.arg].id)
	case evRival, evRetreat, evTick:
		return verb
	case evBreak:
		return verb + " " + w.cfg.periods[e.arg].String()
	}
	return fmt.Sprintf("%s #%d", verb, w.packets[e.arg].serial)
}

// parse is the inverse of the method text.
func (w *world) parse(line string) (event, error) {
	var all []event
	for i := range w.cfg.holders {
		for _, k := range []kind{evAcquire, evRelease, evClose, evReleaseUncertain, evWait, evDisclose, evBind, evStall, evHoldUntil, evRead, evWake} {
			all = append(all, event{k, uint8(i), 0})
		}
		to := w.receivers(i)
		for k := range to.n {
			all = append(all, event{evHandOver, uint8(i), k})
		}
		for k := range w.h[i].calls.n {
			all = append(all, event{evCancel, uint8(i), k})
		}
		for k := range w.h[i].contexts.n {
			all = append(all, event{evUnbind, uint8(i), k})
		}
	}
	for i := range w.packets {
		for k := evExchange; k <= evPutOff; k++ {
			all = append(all, event{k, 0, uint8(i)})
		}
	}
	for _, k := range []kind{evRival, evRetreat, evTick} {
		all = append(all, event{kind: k})
	}
	if p, ok := strings.CutPrefix(line, verbs[evBreak]+" "); ok {
		period := lease.Period{}
		if p != "absent" {
			d, err := time.ParseDuration(p)
			if err != nil {
				return event{}, err
			}
			period = lease.Grace(d)
		}
		for i, q := range w.cfg.periods {
			if q == period {
				return event{kind: evBreak, arg: uint8(i)}, nil
			}
		}
		return event{}, fmt.Errorf("no configuration has the period %s", p)
	}
	for _, e := range all {
		if w.text(e) == line {
			return e, nil
		}
	}
	return event{}, fmt.Errorf("cannot happen now: %s", strconv.Quote(line))
}
