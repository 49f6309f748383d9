package holder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// A world is the complete state of a test: one lease, up to two holders, the network between them,
// and the actions of other clients. A world is a value: copyTo makes a copy that shares no
// changeable data with the original.
//
// A world also remembers the actions of the machines that a later check needs. The type holder has
// the fields for these actions, separate from the fields of the machine, because a check must not
// trust the machine.
type world struct {
	cfg     *config
	ticks   int64 // the number of ticks that have passed
	rec     lease.Record
	h       [2]holder
	packets []packet // first the packets of the first holder; for each holder, in the order of sending
	left    bounds
	rivals  uint8 // the number of IDs that the rival has made
	faulty  bool  // a request or an answer was lost, delayed or wrong

	calls   uint64 // the last number of a call
	serial  uint32 // the last number of a packet
	node    uint32 // the number of the node in the search
	problem *problem
	script  *script // nil unless the effects are written down
}

// The bounds say how often each kind of event may still happen.
type bounds struct {
	calls  [2]uint8
	faults uint8
	ticks  uint8
	others uint8 // the events of the rival and the operator
	reads  uint8
}

// A problem is a property that does not hold.
type problem struct{ property, text string }

func (w *world) fail(property, format string, args ...any) {
	if w.problem == nil {
		w.problem = &problem{property, fmt.Sprintf(format, args...)}
	}
}

// A holder is a machine, and what the world remembers of it.
type holder struct {
	m         Machine
	dice      numbered
	calls     list[waiting] // the calls that have no answer
	contexts  list[bound]   // the contexts whose work has not stopped
	guarded   list[guarded]
	disclosed list[lease.ID] // the IDs that the holder has disclosed
	inc       heldTerm
	newest    uint64 // the newest token in which the holder has believed
	flags     [maxIDs]flags
	stuck     int
	closed    bool
	prior     time.Time    // U before the renewal that is being answered
	begun     uint64       // the number of terms that have begun
	seen      lease.Record // the record in the answer that the machine is handling
	lifting   bool         // whether a Release was called and its effects are being checked
	returning Aim          // of the stuck request that is returning
	excused   bool         // whether a release may follow the return of that request
	lost      uint64       // the token of a loss that no Release has reported; 0: none
	releaser  uint64       // the call of Release whose effects are being checked; 0: none
	reports   list[loss]   // the losses that calls of Release report
}

type waiting struct {
	number uint64
	op     Op
}

// A bound is a context of WhileHeld.
type bound struct {
	id    lease.ID
	ended bool
}

// A loss is reported by the call of Release with this number.
type loss struct{ call, token uint64 }

// A guarded ID was lost while work under its contexts was running, or is held until MinHold. The machine
// must not send a release of a guarded ID until the work has stopped, or until the time due.
type guarded struct {
	id  lease.ID
	due time.Time // if zero, the time never comes
}

// A heldTerm has the state that the holder should have. Before the world passes the answer of a
// grant to the machine, the world sets the field until. The method begin then uses the value of the
// field until.
type heldTerm struct {
	alive    bool
	id       lease.ID
	token    uint64
	number   uint64
	until    time.Time // U, computed again from the answers; zero: infinite
	stopped  bool
	excused  bool // another client has broken, changed or taken over the lease, and the holder has not seen it
	again    bool // a signal came while a renewal was in flight
	renewed  time.Time
	notified telling
}

// The flags are what the world remembers of an ID.
type flags uint16

const (
	retired    flags = 1 << iota // the ID must not be proposed again
	used                         // the holder has believed in the ID
	unreleased                   // the ID must be released as soon as no other command is in flight
	doubt                        // a request that puts the ID in force had no certain outcome
	disclosed                    // the holder has disclosed the ID
	over                         // the lease was lost, but not because its time was over
	probed                       // the ID was acquired once to settle it
	handed                       // HandOver was called for the ID
	unknown                      // the release of the ID had no certain outcome
	holdsUntil                   // the lease is held until MinHold under the ID
	taking                       // the Acquire in service has sent a take-over for the ID
)

const maxIDs = 48

func (h *holder) flag(id lease.ID) *flags { return &h.flags[int(id[1])%maxIDs] }

// A list is a short slice inside a value.
type list[T comparable] struct {
	n   uint8
	all [6]T
}

func (l *list[T]) add(v T)      { l.all[l.n] = v; l.n++ }
func (l *list[T]) full() bool   { return int(l.n) == len(l.all) }
func (l *list[T]) slice() []T   { return l.all[:l.n] }
func (l *list[T]) remove(i int) { copy(l.all[i:l.n], l.all[i+1:l.n]); l.n--; l.all[l.n] = *new(T) }
func (l *list[T]) has(v T) bool { return l.index(v) >= 0 }
func (l *list[T]) index(v T) int {
	for i, x := range l.slice() {
		if x == v {
			return i
		}
	}
	return -1
}

// A packet is a request on its way, or its answer.
type packet struct {
	Request
	who      int
	serial   uint32
	lastCall uint64    // the last call before the request was sent
	acquire  uint64    // the call that an Acquire was sent for
	inc      uint64    // the number of the term that a renewal is for
	patience time.Time // until when a renewal may wait to be sent; zero: it may not
	applied  bool      // the authority has decided: res and err are its answer
	answered bool      // the machine has the answer: the request can still take effect at the authority
	stuck    bool      // the machine has the answer, but the Do of the request has not returned
	outdated bool      // another client has changed the record since the decision
	due      uint64    // the numbers of the IDs that had to be released when this release was sent
	crossed  bool      // a stuck request with the same ID has returned since this request was sent
	decided  lease.ID  // the ID in force when the request was decided, even if the answer hides the ID
	res      lease.Result
	err      error
}

// numbered makes IDs that show their holder, and never shortens a pause.
type numbered struct {
	who  uint8
	last uint8
}

func (d *numbered) ID() lease.ID {
	d.last++
	return lease.ID{d.who + 1, d.last}
}

func (d *numbered) Shorten(t time.Duration, _ float64) time.Duration { return t }

const rivalsIDs = 3 // the first byte of an ID of the rival

func ours(id lease.ID, who int) bool { return int(id[0]) == who+1 }

var (
	beginning  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errTimeout = errors.New("timed out")
)

func newWorld(c *config) *world {
	w := &world{cfg: c, left: c.bounds, rec: c.record}
	for i := range w.h {
		h := &w.h[i]
		h.dice.who = uint8(i)
		h.m = Machine{o: &c.options[i], name: "l", random: &h.dice}
	}
	return w
}

// copyTo makes d a copy of w, and reuses the memory of d.
func (w *world) copyTo(d *world) {
	packets := append(d.packets[:0], w.packets...)
	var ledgers [2]ledger
	var calls [2][]call
	for i := range w.h {
		ledgers[i] = append(d.h[i].m.ledger[:0], w.h[i].m.ledger...)
		calls[i] = append(d.h[i].m.commands.waiting[:0], w.h[i].m.commands.waiting...)
	}
	*d = *w
	d.packets = packets
	for i := range d.h {
		m := &d.h[i].m
		m.ledger, m.commands.waiting, m.random, m.out = ledgers[i], calls[i], &d.h[i].dice, nil
	}
}

// --- Time

func (w *world) now(who int) time.Time {
	return beginning.Add(time.Duration(w.ticks) * w.cfg.rates[who])
}

func (w *world) authorityNow() time.Time {
	return beginning.Add(time.Duration(w.ticks) * w.cfg.rate)
}

// pass lets a tick pass, and wakes the machines that are due.
func (w *world) pass() {
	w.ticks++
	w.rec = w.rec.At(w.authorityNow())
	if w.cfg.pauses {
		return
	}
	for i := range w.cfg.holders {
		if w.sleepy(i) {
			w.wake(i)
		}
		w.checkTime(i)
	}
}

func (w *world) sleepy(who int) bool { return w.h[who].m.Sleep(w.now(who)) <= 0 }

func (w *world) wake(who int) {
	w.input(who, nil)
	w.after(who)
}

// --- Calls

func (w *world) input(who int, input func(m *Machine, now time.Time)) {
	w.h[who].m.Handle(w.now(who), input)
}

func (w *world) call(who int, o Op) uint64 {
	w.calls++
	w.h[who].calls.add(waiting{w.calls, o})
	return w.calls
}

func (w *world) acquire(who int) {
	h, now := &w.h[who], w.now(who)
	n, commands := w.call(who, OpAcquire), w.commands(who)
	w.input(who, func(m *Machine, _ time.Time) { m.Acquire(n) })
	held := h.inc.alive && (h.inc.until.IsZero() || now.Before(h.inc.until))
	out := w.after(who)
	switch a := answerTo(out, n); {
	case h.closed && (a == nil || a.Err != lease.ErrClosed):
		w.fail("closed", "an Acquire after Close is not refused")
	case h.closed:
	case held && (a == nil || a.Err != nil || w.commands(who) > commands):
		w.fail("acquire-held", "an Acquire while holding is not answered at once")
	}
}

func answerTo(out Effects, n uint64) *Outcome {
	for i := range out.Answers {
		if out.Answers[i].Call == n {
			return &out.Answers[i]
		}
	}
	return nil
}

func (w *world) release(who int, shut bool) {
	h := &w.h[who]
	h.guarded, h.lifting = list[guarded]{}, true
	before := h.calls
	w.superseded(who)
	n := w.call(who, OpRelease)
	if shut {
		w.input(who, func(m *Machine, _ time.Time) { m.Close(n) })
		h.closed = true
	} else {
		h.releaser = n
		if h.lost != 0 {
			h.reports.add(loss{n, h.lost})
			h.lost = 0
		}
		w.input(who, func(m *Machine, _ time.Time) { m.Release(n) })
	}
	for i := range h.flags {
		if h.flags[i]&doubt != 0 {
			h.flags[i] |= retired
		}
		if !h.closed {
			h.flags[i] &^= holdsUntil
		}
	}
	out := w.after(who)
	h.lifting, h.releaser = false, 0
	if h.inc.alive {
		w.fail("release-ends", "what was held before Release is still believed")
	}
	for _, c := range before.slice() {
		a := answerTo(out, c.number)
		want := map[Op]error{OpAcquire: lease.ErrReleased, OpWait: nil}
		if err, ends := want[c.op]; ends && (a == nil || a.Err != err) {
			w.fail("release-ends", "call %d still waits after Release", c.number)
		}
	}
}

// superseded records that the ID of the Acquire in flight must be released.
func (w *world) superseded(who int) {
	h := &w.h[who]
	for _, p := range w.packets {
		if p.who == who && !p.answered && p.acquire != 0 && h.calls.has(waiting{p.acquire, OpAcquire}) {
			*h.flag(p.Proposed) |= retired | unreleased
		}
	}
}

func (w *world) settle(who int) {
	h := &w.h[who]
	alive := h.inc.alive && (h.inc.until.IsZero() || w.now(who).Before(h.inc.until))
	n := w.call(who, OpReleaseUncertain)
	w.input(who, func(m *Machine, _ time.Time) { m.ReleaseUncertain(n) })
	w.after(who)
	if alive && !h.inc.alive {
		w.fail("settle", "a settle has ended what is held")
	}
}

func (w *world) handOver(who int, to lease.ID) {
	h := &w.h[who]
	alive := h.inc.alive && (h.inc.until.IsZero() || w.now(who).Before(h.inc.until))
	before := h.calls
	if alive && to != h.inc.id {
		w.superseded(who)
		*h.flag(h.inc.id) |= handed
	}
	n := w.call(who, OpHandOver)
	w.input(who, func(m *Machine, _ time.Time) { m.HandOver(n, to) })
	out := w.after(who)
	if a := answerTo(out, n); h.closed && (a == nil || a.Err != lease.ErrClosed) {
		w.fail("closed", "a HandOver after Close is not refused")
	}
	if alive && to == h.inc.id {
		if a := answerTo(out, n); a == nil || a.Err == nil || !h.inc.alive {
			w.fail("hand-over", "a hand-over to itself is not refused")
		}
		return
	}
	if h.inc.alive {
		w.fail("release-ends", "what was held before HandOver is still believed")
	}
	for _, c := range before.slice() {
		if a := answerTo(out, c.number); alive && a == nil && (c.op == OpAcquire || c.op == OpWait) {
			w.fail("release-ends", "call %d still waits after HandOver", c.number)
		}
	}
}

func (w *world) await(who int) {
	h := &w.h[who]
	n := w.call(who, OpWait)
	w.input(who, func(m *Machine, _ time.Time) { m.Await(n) })
	if out := w.after(who); h.closed && answerTo(out, n) == nil {
		w.fail("closed", "a Wait after Close waits")
	}
}

func (w *world) cancel(who int, n uint64) {
	h := &w.h[who]
	for _, p := range w.packets {
		if p.who == who && !p.answered && p.acquire == n {
			*h.flag(p.Proposed) |= retired | unreleased
		}
	}
	w.input(who, func(m *Machine, _ time.Time) { m.Cancel(n, context.Canceled) })
	if out := w.after(who); answerTo(out, n) == nil {
		w.fail("calls", "call %d was cancelled and is not answered", n)
	}
}

func (w *world) disclose(who int) {
	h := &w.h[who]
	var id lease.ID
	w.input(who, func(m *Machine, _ time.Time) { id = m.Disclose() })
	w.after(who)
	switch {
	case h.closed && !id.IsZero():
		w.fail("closed", "a closed holder discloses an ID")
	case h.closed:
	case h.inc.alive && id != h.inc.id:
		w.fail("disclose", "%s is disclosed and %s is held", idName(id), idName(h.inc.id))
	case id.IsZero() || !h.inc.alive && *h.flag(id)&retired != 0:
		w.fail("retired", "%s is disclosed, which is retired", idName(id))
	}
	if !id.IsZero() {
		*h.flag(id) |= disclosed
		if !h.disclosed.has(id) && !h.disclosed.full() {
			h.disclosed.add(id)
		}
	}
	w.note("%s discloses %s", name(who), idName(id))
}

// --- Contexts

func (w *world) bind(who int) {
	var id lease.ID
	var err error
	h := &w.h[who]
	w.input(who, func(m *Machine, _ time.Time) { id, err = m.WorkBegins() })
	w.after(who)
	may := h.inc.alive && !w.inWindow(who) && !h.inc.stopped
	if may != (err == nil) || err == nil && id != h.inc.id {
		w.fail("bind", "bind gives %s, %v", idName(id), err)
	}
	if err == nil {
		h.contexts.add(bound{id: id})
	}
	w.note("%s binds a context: %s", name(who), orError(idName(id), err))
}

func (w *world) unbind(who, i int) {
	h := &w.h[who]
	id := h.contexts.all[i].id
	h.contexts.remove(i)
	w.input(who, func(m *Machine, _ time.Time) { m.WorkEnds(id) })
	h.freed(id)
	w.after(who)
}

// stall ends the term, because its work makes no progress.
func (w *world) stall(who int) {
	h := &w.h[who]
	w.input(who, func(m *Machine, _ time.Time) { m.Stall(lease.TokenOf(h.inc.token), errors.New("no progress")) })
	if w.after(who); h.inc.alive {
		w.fail("stall", "the work makes no progress, and the lease is believed")
	}
}

// holdUntil ends the term, and holds the lease for two seconds.
func (w *world) holdUntil(who int) {
	h, due := &w.h[who], w.now(who).Add(2*time.Second)
	*h.flag(h.inc.id) |= holdsUntil
	h.guarded.add(guarded{id: h.inc.id, due: due})
	w.input(who, func(m *Machine, now time.Time) { m.HoldUntil(now, lease.TokenOf(h.inc.token), due) })
	if w.after(who); h.inc.alive {
		w.fail("hold-until", "the lease is held until MinHold, and still believed")
	}
}

// freed updates a guarded ID after the work under one of its contexts has stopped, or after time
// has passed.
func (h *holder) freed(id lease.ID) {
	for _, c := range h.contexts.slice() {
		if c.id == id {
			return
		}
	}
	for i, g := range h.guarded.slice() {
		if g.id == id {
			h.guarded.remove(i)
			*h.flag(id) |= unreleased
			return
		}
	}
}

// inWindow reports whether the stop window has begun, so that contexts must have ended.
func (w *world) inWindow(who int) bool {
	u := w.h[who].inc.until
	return !u.IsZero() && u.Sub(w.now(who)) <= w.cfg.options[who].StopWindow
}

// --- The watch

// read shows the record to the machine, as a watch does.
func (w *world) read(who int) {
	h := &w.h[who]
	rec, flying := w.rec, w.renewals(who) > 0
	if w.cfg.hides {
		rec.ID = lease.ID{}
	}
	was := h.inc
	w.input(who, func(m *Machine, now time.Time) { m.Read(now, was.id, rec) })
	out := w.after(who)
	ours := rec.State == lease.Leased && (rec.ID == h.inc.id || rec.ID.IsZero())
	switch {
	case !h.inc.alive || ours && rec.Epoch <= h.inc.token:
	case flying:
		h.inc.again = true
	case h.stuck >= mostStuck || w.allRenewals(who) >= mostStuck:
	case len(out.Send) == 0 && was.renewed != w.now(who):
		w.fail("signal", "a watch showed a change, and no renewal was sent")
	}
}

// inFlight counts the requests of a holder in flight for which is returns true.
func (w *world) inFlight(who int, is func(p *packet) bool) (n int) {
	for i := range w.packets {
		if p := &w.packets[i]; p.who == who && !p.answered && is(p) {
			n++
		}
	}
	return n
}

// renewals counts the renewals of the term that are in flight, and allRenewals those of all terms.
func (w *world) renewals(who int) int {
	return w.inFlight(who, func(p *packet) bool { return p.Aim == AimRenew && p.inc == w.h[who].inc.number })
}

func (w *world) allRenewals(who int) int {
	return w.inFlight(who, func(p *packet) bool { return p.Aim == AimRenew })
}

// commands counts the commands in flight.
func (w *world) commands(who int) int {
	return w.inFlight(who, func(p *packet) bool { return p.Aim != AimRenew })
}

// --- The network and the authority

func (w *world) send(who int, r Request, out Effects) {
	h := &w.h[who]
	w.serial++
	p := packet{Request: r, who: who, serial: w.serial, lastCall: w.calls}
	if r.Aim == AimRelease || r.Aim == AimProbe {
		for i, f := range h.flags {
			if f&unreleased != 0 {
				p.due |= 1 << i
			}
		}
	}
	switch r.Aim {
	case AimRenew:
		p.inc = h.inc.number
		if o := &w.cfg.options[who]; h.m.term.belief != nil && !h.inc.until.IsZero() {
			p.patience = h.inc.until.Add(-o.Window() - o.RequestTimeout)
			if latest := r.Sent.Add(3 * o.RequestTimeout); latest.Before(p.patience) {
				p.patience = latest
			}
			if !h.m.Patience().Equal(p.patience) {
				w.fail("patience", "a renewal may wait until %s, and should until %s", w.timeText(h.m.Patience()), w.timeText(p.patience))
			}
		}
	case AimAcquire, AimTakeOver:
		for _, c := range h.calls.slice() {
			if c.op == OpAcquire && answerTo(out, c.number) == nil {
				p.acquire = c.number
				break
			}
		}
	}
	w.packets = append(w.packets, p)
	for i := len(w.packets) - 1; i > 0 && w.packets[i-1].who > who; i-- {
		w.packets[i-1], w.packets[i] = w.packets[i], w.packets[i-1]
	}
}

// mayPutOff reports whether a renewal can have waited until now. A renewal that waits when its term ends is not sent.
func (w *world) mayPutOff(p *packet) bool {
	now, inc := w.now(p.who), &w.h[p.who].inc
	return p.Aim == AimRenew && p.inc == inc.number && inc.alive && p.Sent.Before(now) && !p.patience.Before(now)
}

// putOff lets a renewal that has waited be sent now, so the machine will count from now on.
func (w *world) putOff(p *packet) {
	p.Sent = w.now(p.who)
	w.note("%s is sent only now", w.requestText(p.Request.Request))
}

func (w *world) drop(i int) { w.packets = append(w.packets[:i], w.packets[i+1:]...) }

// apply lets the authority decide a request.
func (w *world) apply(p *packet) {
	now := w.authorityNow()
	before := w.rec.At(now)
	next, err := lease.Step(before, p.Request.Request, now)
	w.rec = next
	p.applied, p.err, p.outdated, p.decided = true, err, false, next.ID
	left := next.Remaining(now)
	if left != lease.Infinite {
		left = max(0, left-w.cfg.unsure)
	}
	p.res = lease.Result{Record: next, Now: now, MinRemaining: left}
	if err != nil && w.cfg.hides {
		p.res.Record.ID = lease.ID{}
	}
	if err != nil && w.cfg.silent {
		p.res = lease.Result{}
	}
	if err == nil && before.State.Locked() && !ours(before.ID, p.who) && next.ID != before.ID {
		w.touched(before.ID)
	}
	w.noteRecord()
}

// touched records that another client has changed the lease under an ID. The holder of the ID
// cannot know of the change before it has the answer to a renewal that is decided after the change.
func (w *world) touched(id lease.ID) {
	if id[0] == 0 || id[0] == rivalsIDs {
		return
	}
	who := int(id[0]) - 1
	if h := &w.h[who]; h.inc.alive && h.inc.id == id {
		h.inc.excused = true
	}
	for i := range w.packets {
		if p := &w.packets[i]; p.who == who && p.applied {
			p.outdated = true
		}
	}
}

// third carries out a request of the rival or the operator.
func (w *world) third(r lease.Request) {
	now := w.authorityNow()
	before := w.rec.At(now)
	next, err := lease.Step(before, r, now)
	w.rec = next
	if err == nil && next != before && before.State.Locked() {
		w.touched(before.ID)
	}
	if err != nil {
		w.note("refused: %v", err)
	}
	w.noteRecord()
}

// answer gives the machine the answer to a packet that the authority has decided.
func (w *world) answer(i int) {
	p := w.packets[i]
	w.drop(i)
	w.answered(p, p.res, p.err, false)
}

// unknown answers a packet with an unknown outcome. If the packet can still arrive or has not
// returned, the world keeps the packet.
func (w *world) unknown(i int, keep, stuck bool) {
	p := &w.packets[i]
	q := *p
	if keep {
		p.answered, p.stuck = true, stuck
		if !stuck {
			p.res, p.err = lease.Result{}, nil
		}
	} else {
		w.drop(i)
	}
	w.faulty = true
	w.answered(q, lease.Result{}, w.cfg.unknown, stuck)
}
