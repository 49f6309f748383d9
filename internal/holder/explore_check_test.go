package holder

import (
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// certainFor returns how long a holder may rely on a duration d that the authority guarantees. By
// SPEC.md, it is D(1-e)/(1+e) - margin. certainFor computes it in integers.
func (w *world) certainFor(who int, d time.Duration) time.Duration {
	o := &w.cfg.options[who]
	e := time.Duration(o.MaxClockDrift*1000 + 0.5)
	return d*(1000-e)/(1000+e) - o.Margin
}

// atMost returns how long the duration d on the authority's clock can last on the holder's clock,
// at most: d(1+e)/(1-e).
func (w *world) atMost(who int, d time.Duration) time.Duration {
	e := time.Duration(w.cfg.options[who].MaxClockDrift*1000 + 0.5)
	return d * (1000 + e) / (1000 - e)
}

// ends returns the time U that follows from an answer. For an infinite lease, it returns the zero
// time.
func (w *world) ends(p *packet, res lease.Result) time.Time {
	d := min(w.cfg.options[p.who].Duration, res.MinRemaining)
	if d == lease.Infinite {
		return time.Time{}
	}
	return p.Sent.Add(w.certainFor(p.who, d))
}

func before(a, b time.Time) bool { // compares two ends of a belief; the zero time means no end
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// answered passes an answer to the machine, and checks what the machine does.
func (w *world) answered(p packet, res lease.Result, err error, stuck bool) {
	who := p.who
	h, now := &w.h[who], w.now(who)
	if stuck {
		h.stuck++
	}
	held := h.inc.alive && (h.inc.until.IsZero() || now.Before(h.inc.until))
	if p.Aim == AimRenew && p.inc == h.inc.number && held {
		w.renewalAnswered(&p, res, err, stuck)
		return
	}
	code, until := lease.CodeOf(err), w.ends(&p, res)
	serving := p.acquire != 0 && h.calls.has(waiting{p.acquire, OpAcquire})
	isWrong := res.Record.Validate() != nil || res.Record.ID != p.Proposed && serving
	uncertain := err != nil && (!ProvesNoChange(err) || p.Aim == AimRelease && code == lease.ErrUnsent) // or not released
	if err == nil && p.Aim == AimAcquire {
		uncertain = isWrong
	}
	granted := err == nil && !uncertain && p.Aim == AimAcquire
	switch p.Aim {
	case AimAcquire, AimTakeOver, AimProbe:
		f := h.flag(p.Proposed)
		if uncertain {
			*f |= doubt
		}
		if *f&(unreleased|doubt) == unreleased && code != 0 && code != lease.ErrBreaking && !serving {
			*f &^= unreleased // the request was certainly not granted
		}
	}
	if granted && serving && !before(now, until) && !until.IsZero() {
		*h.flag(p.Proposed) |= retired | unreleased // the grant came too late
	}
	if p.Aim == AimRelease && !uncertain {
		*h.flag(p.ID) &^= unreleased | unknown
	} else if p.Aim == AimRelease {
		*h.flag(p.ID) |= unknown
	}
	failed := uncertain || code != 0 && !code.Refusal()
	if failed && (p.Aim == AimRelease || p.Aim == AimProbe) {
		for i := range h.flags {
			if p.due>>i&1 != 0 {
				h.flags[i] &^= unreleased // the next call begins again
			}
		}
	}
	if p.Aim == AimRelease && err == nil && ours(res.Record.ID, who) {
		*h.flag(p.ID) &^= unreleased
	}
	if p.Aim == AimProbe && !uncertain && (code == 0 || code == lease.ErrBreaking) {
		*h.flag(p.Proposed) |= unreleased // the ID is in force
	}
	inForce := until.IsZero() || now.Before(until)
	if p.Aim == AimAcquire && granted && serving && inForce {
		h.inc.until = until // the end of the belief that follows
	}
	aboutToHold, rec := h.inc.until, res.Record
	f := h.flag(rec.ID)
	shows := !res.Now.IsZero() && ours(rec.ID, who)
	isPast := *f&(retired|used) != 0 && *f&(doubt|disclosed) != 0 && *f&handed == 0
	isInUse := held && rec.ID == h.inc.id || h.isGuarded(rec.ID)
	switch {
	case p.Aim == AimRenew:
	case shows && rec.State.Locked() && isPast && !isInUse:
		*f |= unreleased // the ID has come into force late
	case shows && code == lease.ErrBreaking && p.Aim == AimAcquire:
		*f |= unreleased
	}
	isProbed := *h.flag(p.ID)&probed != 0
	if p.Aim == AimProbe && !uncertain && (code == 0 || code == lease.ErrBreaking) {
		*h.flag(p.Proposed) |= probed
	}
	h.seen = rec
	w.input(who, func(m *Machine, now time.Time) { m.Answered(p.Request, now, res, err, stuck) })
	out := w.afterAnswer(who, p.Aim)
	h.seen = lease.Record{}
	if held && !h.inc.alive {
		w.fail("stale", "the answer to another request has ended what is held")
	}
	if p.Aim == AimRelease {
		w.checkRepeated(&p, out, uncertain, code.Refusal() && !rec.State.Locked() && !isProbed)
	}
	if p.Aim == AimTakeOver && serving && code.Refusal() && h.stuck < mostStuck {
		if len(out.Send) == 0 || out.Send[len(out.Send)-1].Aim != AimAcquire {
			w.fail("take-over-goes-on", "a take-over was refused, and the lease is not acquired, which may be free")
		}
	}
	if p.Aim != AimAcquire || !serving {
		return
	}
	a := answerTo(out, p.acquire)
	switch {
	case granted && (until.IsZero() || now.Before(until)):
		if a == nil || a.Err != nil || !h.inc.alive {
			w.fail("acquire-granted", "a grant of %s is not held", idName(p.Proposed))
			return
		}
		h.inc.until, h.inc.excused = aboutToHold, p.outdated
	case granted:
		if a == nil || a.Err == nil {
			w.fail("acquire-late", "a grant that was answered too late is no error")
		}
	case uncertain:
		if a == nil || a.Err == nil || a.Err == ErrNotGranted {
			w.fail("acquire-unknown", "an Acquire of unknown outcome is no error")
		}
	case a != nil && a.Err == ErrNotGranted:
		switch {
		case w.cfg.hides && ours(p.decided, who) && (*h.flag(p.decided)&unknown != 0 || h.isGuarded(p.decided)):
			w.fail("acquire-false", "an Acquire returns false, and %s is in force, which is not settled", idName(p.decided))
		case res.Now.IsZero() || w.cfg.world.has(evDuplicate), ours(rec.ID, who) && *h.flag(rec.ID)&holdsUntil != 0:
		case !rec.State.Locked(), ours(rec.ID, who) && rec.State == lease.Leased, ours(rec.ID, who) && *h.flag(rec.ID)&over == 0:
			w.fail("acquire-false", "an Acquire returns false, and the record is %s", w.recordText(rec))
		}
	}
}

func (h *holder) isGuarded(id lease.ID) bool {
	for _, g := range h.guarded.slice() {
		if g.id == id {
			return true
		}
	}
	return false
}

// checkRepeated checks what follows a release. If the outcome of the release is unknown, the
// machine must not repeat it by itself, unless a stuck Acquire of its ID has returned in the
// meantime. If the release of an infinite lease was refused and its ID is in doubt, the machine
// must send an Acquire.
func (w *world) checkRepeated(p *packet, out Effects, uncertain, refused bool) {
	h := &w.h[p.who]
	repeated, isProbed := false, false
	for _, r := range out.Send {
		repeated = repeated || r.Aim == AimRelease && r.ID == p.ID
		isProbed = isProbed || r.Aim == AimProbe && r.Proposed == p.ID
	}
	for _, a := range out.Answers {
		isLater := a.Op == OpRelease && a.Call > p.lastCall
		if uncertain && h.stuck < mostStuck && isLater && a.Err != nil {
			w.fail("later-call", "call %d fails with a release that was sent before it", a.Call)
		}
	}
	if uncertain && repeated && !w.releaseCalledSince(p) && !p.crossed {
		w.fail("repeated", "a release of unknown outcome is repeated at once")
	}
	mayComeIntoForce := w.cfg.options[p.who].Duration == lease.Infinite && *h.flag(p.ID)&doubt != 0
	if refused && mayComeIntoForce && h.stuck < mostStuck && !isProbed {
		w.fail("probe", "%s is in doubt, and was not acquired to release it", idName(p.ID))
	}
}

// releaseCalledSince reports whether a Release that was called after the request was sent still
// waits.
func (w *world) releaseCalledSince(p *packet) bool {
	for _, c := range w.h[p.who].m.commands.waiting {
		if c.isCleanup() && c.number > p.lastCall {
			return true
		}
	}
	return false
}

// renewalAnswered is like the method answered, for a renewal of the held term.
func (w *world) renewalAnswered(p *packet, res lease.Result, err error, stuck bool) {
	who := p.who
	h, was := &w.h[who], w.h[who].inc
	rec, code, until := res.Record, lease.CodeOf(err), w.ends(p, res)
	if err == nil && rec.Validate() != nil {
		code, err = lease.ErrCorrupt, lease.ErrCorrupt
	}
	own := rec.ID == was.id && !res.Now.IsZero()
	longer := err == nil || code.Refusal() && before(was.until, until)
	h.prior = was.until
	reason := w.losesBy(p, res, err)
	if reason == 0 && own && rec.State == lease.Leased && longer {
		h.inc.until = until
	}
	if err == nil && rec.ID == was.id || code.Refusal() {
		h.inc.excused = p.outdated
	}
	out, held := w.endsBy(p, reason, err, rec, "renewal-refused", "renewal-kept", func(m *Machine, now time.Time) { m.Answered(p.Request, now, res, err, stuck) })
	if !held {
		return
	}
	if was.again && err != nil && !code.Refusal() {
		h.inc.again = false // the renewal is retried after RetryDelay
	} else if was.again {
		h.inc.again = false
		if h.stuck < mostStuck && h.inc.renewed == was.renewed && w.renewals(who) == 0 && w.allRenewals(who) < mostStuck {
			w.fail("signal", "a signal came while a renewal was in flight, and no other was sent")
		}
	}
	w.checkNotified(who, &was, rec, own && rec.State == lease.Breaking, out)
}

// renewalReturned is like the method renewalAnswered, for the late answer to a renewal that was given up.
func (w *world) renewalReturned(p *packet, res lease.Result, err error) {
	h := &w.h[p.who]
	h.prior = h.inc.until
	reason := w.losesBy(p, res, err)
	out, _ := w.endsBy(p, reason, err, res.Record, "late-renewal", "late-renewal", func(m *Machine, now time.Time) { m.Returned(now, p.Request, res, err) })
	for _, r := range out.Report {
		if b, ok := r.(Breaking); ok {
			h.inc.notified = telling{at: w.now(p.who), until: h.inc.until, end: res.Record.Until}
			if !near(b.Until, h.inc.until) {
				w.fail("breaking", "OnBreaking gets %s, and U is %s", w.timeText(b.Until), w.timeText(h.inc.until))
			}
		}
	}
}

// losesBy returns the reason for which the answer to a renewal of the held term ends the term, or 0. If the answer shows
// that a break ends earlier than U, losesBy changes U.
func (w *world) losesBy(p *packet, res lease.Result, err error) lease.Code {
	h, rec, code := &w.h[p.who], res.Record, lease.CodeOf(err)
	shows := !res.Now.IsZero()
	own := shows && rec.ID == h.inc.id
	switch {
	case err != nil && !code.Refusal():
		return 0
	case own && rec.State == lease.Leased && rec.Epoch > h.inc.token:
		if *h.flag(rec.ID)&doubt != 0 {
			return lease.ErrEnded // a late Acquire of its own may have been granted
		}
		return lease.ErrTakenOver
	case err == nil, own && rec.State == lease.Leased:
		return 0
	case own && rec.State == lease.Breaking && res.MinRemaining > 0:
		if until := w.ends(p, res); before(until, h.inc.until) {
			h.inc.until = until
		}
		if w.now(p.who).Before(h.inc.until) {
			return 0
		}
		return lease.ErrBroken
	case own && (rec.State == lease.Breaking || rec.State == lease.Broken):
		return lease.ErrBroken
	case shows && !rec.ID.IsZero() && rec.State == lease.Leased && rec.Owner == w.cfg.options[p.who].Owner:
		return lease.ErrTakenOver
	}
	return code
}

// endsBy passes the answer to a renewal of the held term to the machine. It checks that the term ends for the reason, or,
// if the reason is 0, that it goes on until U. The properties are those that fail otherwise.
func (w *world) endsBy(p *packet, reason lease.Code, err error, rec lease.Record, refused, kept string, input func(*Machine, time.Time)) (out Effects, held bool) {
	h := &w.h[p.who]
	expected := h.inc.until
	w.input(p.who, input)
	out = w.after(p.who)
	h.prior = time.Time{}
	lost, _ := out.Ended.(*lease.LostError)
	switch b := h.m.term.belief; {
	case reason != 0 && (lost == nil || lost.Reason != reason):
		w.fail(refused, "after the answer to a renewal (%v, %s) the term ends with %v, not %v", err, w.recordText(rec), out.Ended, reason)
	case reason != 0:
	case lost != nil || !h.inc.alive:
		w.fail(kept, "after the answer to a renewal (%v, %s) the term is lost", err, w.recordText(rec))
	case b == nil || !near(b.Until(), expected):
		w.fail("until", "U should be %s", w.timeText(expected))
	default:
		held = true
	}
	return out, held
}

// near reports whether a and b are the same end of a belief, if a may have been rounded down by up
// to 2 ns.
func near(a, b time.Time) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() == b.IsZero()
	}
	d := b.Sub(a)
	return d >= 0 && d <= 2
}

// A telling has the times that the handlers of OnBreaking were told. The zero telling means that
// the handlers were not called.
type telling struct {
	at, until time.Time // times on the holder's clock
	end       time.Time // a time on the authority's clock
}

// checkNotified checks the calls of OnBreaking: at the first answer that shows a break, and again only
// if the end has moved by more than Margin.
func (w *world) checkNotified(who int, was *heldTerm, rec lease.Record, breaking bool, out Effects) {
	h, now := &w.h[who], w.now(who)
	margin := w.cfg.options[who].Margin
	notified := false
	for _, r := range out.Report {
		if b, ok := r.(Breaking); ok {
			notified = true
			if !near(b.Until, h.inc.until) || b.Token.Compare(lease.TokenOf(was.token)) != 0 {
				w.fail("breaking", "OnBreaking gets %s, and U is %s", w.timeText(b.Until), w.timeText(h.inc.until))
			}
		}
	}
	moved := rec.Until.Before(was.notified.end.Add(-margin))
	earlier := h.inc.until.Before(was.notified.until.Add(-margin))
	switch {
	case !breaking && notified:
		w.fail("breaking", "OnBreaking is called, and the lease is not breaking")
	case !breaking:
		if rec.ID == was.id && rec.State == lease.Leased {
			h.inc.notified = telling{}
		}
	case was.notified.at.IsZero() && !notified:
		w.fail("breaking", "OnBreaking is not called")
	case !was.notified.at.IsZero() && notified && !moved && !earlier:
		w.fail("breaking", "OnBreaking is called again, and the end has not moved by more than Margin")
	case moved && !notified && !was.notified.at.IsZero():
		w.fail("breaking", "OnBreaking is not called, and the end has moved")
	}
	if notified {
		h.inc.notified = telling{at: now, until: h.inc.until, end: rec.Until}
	}
}

// returns tells the machine that a request that was given up has returned.
func (w *world) returns(i int) {
	p := w.packets[i]
	if p.applied {
		w.drop(i)
	} else {
		w.packets[i].stuck = false
	}
	for j := range w.packets {
		if other := &w.packets[j]; other.Aim == AimRelease && (!other.answered || other.stuck) && other.ID == p.Proposed {
			other.crossed = true
		}
	}
	h, now, res, err := &w.h[p.who], w.now(p.who), p.res, p.err
	if !p.applied {
		res, err = lease.Result{}, w.cfg.unknown
	}
	h.stuck--
	if p.Aim == AimRelease && (err == nil || lease.CodeOf(err).Refusal()) {
		*h.flag(p.ID) &^= unknown
	}
	isUnknown := err != nil && !lease.CodeOf(err).Refusal()
	h.returning, h.excused = p.Aim, p.crossed || w.calls > p.lastCall || isUnknown
	held := h.inc.alive && (h.inc.until.IsZero() || now.Before(h.inc.until))
	if p.Aim == AimRenew && p.inc == h.inc.number && held {
		w.renewalReturned(&p, res, err)
	} else {
		w.input(p.who, func(m *Machine, now time.Time) { m.Returned(now, p.Request, res, err) })
		w.after(p.who)
	}
	h.returning = 0
}

func (w *world) after(who int) Effects { return w.afterAnswer(who, 0) }

// afterAnswer takes the effects of an input, and checks them. After the answer to a command, the
// machine may send another command for the same call.
func (w *world) afterAnswer(who int, after Aim) Effects {
	h, now := &w.h[who], w.now(who)
	out := *h.m.Take()
	w.noteEffects(who, out)
	if out.Stop != nil && !out.Began {
		w.checkStop(who, out.Stop, now)
	}
	w.checkEnd(who, out)
	if out.Began {
		w.begin(who, out)
		if out.Stop != nil {
			w.checkStop(who, out.Stop, now)
		}
	}
	w.checkBelief(who)
	for _, r := range out.Send {
		w.checkSend(who, r, out, after, out.Ended != nil)
		w.send(who, r, out)
	}
	for _, a := range out.Answers {
		i := h.calls.index(waiting{a.Call, a.Op})
		if i < 0 {
			w.fail("answered-once", "call %d is answered, and does not wait", a.Call)
			continue
		}
		h.calls.remove(i)
		switch {
		case a.Op == OpAcquire && a.Err == nil && (!h.inc.alive || a.Token != lease.TokenOf(h.inc.token)):
			w.fail("acquire-true", "an Acquire returns true with token %q", a.Token)
		case a.Err != nil && a.Token != "":
			w.fail("acquire-true", "an error comes with a token")
		case a.Op == OpRelease:
			w.checkLoss(who, a)
		case a.Op == OpReleaseUncertain && a.Err == nil:
			w.checkSettled(who)
		}
	}
	w.checkWaiting(who)
	w.checkTime(who)
	return out
}

// checkLoss checks that the first Release after a loss reports it, and that no other one does.
func (w *world) checkLoss(who int, a Outcome) {
	h := &w.h[who]
	want := uint64(0)
	for i, r := range h.reports.slice() {
		if r.call == a.Call {
			want = r.token
			h.reports.remove(i)
			break
		}
	}
	var lost *lease.LostError
	isLoss := errors.As(a.Err, &lost)
	if isLoss != (want != 0) || isLoss && lost.Token != lease.TokenOf(want) {
		w.fail("loss-reported", "a Release returns %v, and the token of the loss is %d", a.Err, want)
	}
	if a.Err == nil || a.Err == error(lost) {
		w.checkReleased(who)
	}
}

// checkStop checks the end of the contexts at the beginning of the stop window.
func (w *world) checkStop(who int, cause error, now time.Time) {
	h := &w.h[who]
	lost, ok := cause.(*lease.LostError)
	until := h.inc.until
	if !h.prior.IsZero() {
		until = h.prior // the window had begun before the answer moved its end
	}
	switch {
	case !h.inc.alive || !ok || lost.Reason != lease.ErrStopWindow || lost.Token != lease.TokenOf(h.inc.token):
		w.fail("stop-window", "contexts end with %v", cause)
	case h.inc.stopped:
		w.fail("stop-window", "contexts are ended again")
	case until.IsZero() || until.Sub(now) > w.cfg.options[who].StopWindow && h.inc.until.Sub(now) > w.cfg.options[who].StopWindow:
		w.fail("stop-window", "contexts are ended %v before U", until.Sub(now))
	}
	h.inc.stopped = true
	w.endContexts(who, h.inc.id)
}

// checkEnd checks that a term ends once, and that the machine reports the end correctly.
func (w *world) checkEnd(who int, out Effects) {
	h := &w.h[who]
	was := h.inc
	losses := 0
	for _, r := range out.Report {
		if lost, ok := r.(*lease.LostError); ok {
			losses++
			if lost != out.Ended || lost.Token != lease.TokenOf(was.token) {
				w.fail("lost-once", "%v is reported, and the term ended with %v", lost, out.Ended)
			}
		}
	}
	if out.Ended == nil {
		if losses > 0 {
			w.fail("lost-once", "a loss is reported, and nothing has ended")
		}
		return
	}
	if !was.alive {
		w.fail("lost-once", "a term ends that is not alive: %v", out.Ended)
	}
	lost, isLoss := out.Ended.(*lease.LostError)
	switch {
	case isLoss && losses != 1:
		w.fail("lost-once", "a loss is reported %d times", losses)
	case !isLoss && (out.Ended != lease.ErrReleased || losses > 0):
		w.fail("lost-once", "a release ends with %v and %d reports", out.Ended, losses)
	}
	h.inc.alive = false
	*h.flag(was.id) |= retired
	working := 0
	for _, c := range h.contexts.slice() {
		if c.id == was.id {
			working++
		}
	}
	w.endContexts(who, was.id)
	if !isLoss {
		return
	}
	if h.releaser != 0 {
		h.reports.add(loss{h.releaser, was.token})
	} else {
		h.lost = was.token
	}
	if lost.Reason == lease.ErrExpired && !was.notified.at.IsZero() {
		w.fail("lost-reason", "the lease was breaking, and is lost as %v", lost.Reason)
	}
	unknown := lost.Reason == lease.ErrExpired || lost.Reason == lease.ErrNoProgress
	if !unknown {
		*h.flag(was.id) |= over
	}
	if unknown || *h.flag(was.id)&doubt != 0 {
		if working > 0 && !h.lifting {
			g := guarded{id: was.id}
			if d := w.cfg.options[who].Duration; d != lease.Infinite {
				g.due = w.lastSent(who, &was).Add(w.cfg.options[who].RequestTimeout + w.atMost(who, d))
			}
			h.guarded.add(g)
		} else {
			*h.flag(was.id) |= unreleased
		}
	}
}

// lastSent returns when the last renewal of a term can have been sent: a renewal without an answer may have waited.
func (w *world) lastSent(who int, was *heldTerm) time.Time {
	last := was.renewed
	for i := range w.packets {
		if p := &w.packets[i]; p.who == who && p.Aim == AimRenew && p.inc == was.number && !p.answered && p.patience.After(last) {
			last = p.patience
		}
	}
	return last
}

func (w *world) endContexts(who int, id lease.ID) {
	h := &w.h[who]
	for i := range h.contexts.slice() {
		if c := &h.contexts.all[i]; c.id == id {
			c.ended = true
		}
	}
}

// begin checks the beginning of a term.
func (w *world) begin(who int, out Effects) {
	h := &w.h[who]
	b := h.m.term.belief
	if b == nil || h.inc.alive {
		w.fail("began", "a term begins")
		return
	}
	epoch, err := b.Token.Epoch()
	granted := false
	for _, a := range out.Answers {
		granted = granted || a.Op == OpAcquire && a.Err == nil
	}
	switch {
	case err != nil || epoch <= h.newest:
		w.fail("tokens", "a token %q is believed after %d", b.Token, h.newest)
	case !granted:
		w.fail("late-grant", "a grant is believed that no Acquire returns")
	case *h.flag(b.ID)&(retired|used) != 0:
		w.fail("retired", "%s is held again", idName(b.ID))
	case h.closed:
		w.fail("closed", "a closed holder begins to hold")
	}
	h.newest, h.lost = epoch, 0
	h.begun++
	*h.flag(b.ID) |= used
	for i := range h.flags {
		h.flags[i] &^= unreleased | unknown // no other ID of the holder is in force
	}
	h.guarded = list[guarded]{}
	h.inc = heldTerm{alive: true, id: b.ID, token: epoch, number: h.begun, until: h.inc.until, renewed: b.Sent}
	if !near(b.Until(), h.inc.until) {
		w.fail("until", "U is %s, and should be %s", w.timeText(b.Until()), w.timeText(h.inc.until))
	}
}

// checkBelief compares the belief of the machine with the term that the world remembers.
func (w *world) checkBelief(who int) {
	h, b := &w.h[who], w.h[who].m.term.belief
	switch {
	case (b != nil) != h.inc.alive:
		w.fail("lost-once", "a belief ends or begins without a word")
	case b != nil && (b.ID != h.inc.id || b.Token != lease.TokenOf(h.inc.token)):
		w.fail("belief", "the belief is in %s, and %s was granted", idName(b.ID), idName(h.inc.id))
	case b != nil && !h.inc.until.IsZero() && !w.now(who).Before(h.inc.until):
		w.fail("until", "it is believed at U")
	case b != nil && !h.inc.until.IsZero() && (b.Until().IsZero() || b.Until().After(h.inc.until)):
		w.fail("until", "U is %s, and should be %s", w.timeText(b.Until()), w.timeText(h.inc.until))
	}
}

// checkSend checks a request that is about to be sent.
func (w *world) checkSend(who int, r Request, out Effects, after Aim, ended bool) {
	h := &w.h[who]
	if !r.Sent.Equal(w.now(who)) {
		w.fail("sent", "a request is sent at another time")
	}
	if h.stuck >= mostStuck {
		w.fail("stuck-bound", "a request is sent, though %d have not returned", h.stuck)
	}
	if h.closed && r.Aim != AimRelease && r.Aim != AimProbe {
		w.fail("closed", "a closed holder sends %s", w.requestText(r.Request))
	}
	if r.Aim == AimRenew {
		switch {
		case !h.inc.alive && !ended || r.ID != h.inc.id: // a late renewal may be sent together with the release
			w.fail("renewal", "%s is renewed, which is not held", idName(r.ID))
		case w.renewals(who) > 0:
			w.fail("one-renewal", "two renewals of one term are in flight")
		case w.allRenewals(who) >= mostStuck:
			w.fail("renewal-bound", "%d renewals are in flight", w.allRenewals(who)+1)
		}
		h.inc.renewed = r.Sent
		return
	}
	if w.commands(who) > 0 {
		w.fail("one-command", "two commands are in flight")
	}
	served := false // whether an Acquire ended in this step
	for _, a := range out.Answers {
		served = served || a.Op == OpAcquire
	}
	goesOn := (after == AimAcquire || after == AimTakeOver) && !served
	switch r.Aim {
	case AimAcquire, AimTakeOver:
		f := *h.flag(r.Proposed)
		if f&retired != 0 {
			w.fail("retired", "%s is proposed, which is retired", idName(r.Proposed))
		}
		if h.inc.alive {
			w.fail("acquire-held", "an Acquire is sent while holding")
		}
		if !w.hasCall(who, OpAcquire) {
			w.fail("late-grant", "an Acquire is sent for which no call waits")
		}
		if r.Aim == AimTakeOver {
			if h.seen.State != lease.Leased || h.seen.ID != r.ID {
				w.fail("take-over", "%s is taken over, and the record was %s", idName(r.ID), w.recordText(h.seen))
			}
			if goesOn && f&taking != 0 {
				w.fail("take-over", "one Acquire takes over twice")
			}
			*h.flag(r.Proposed) |= taking
			if w.rivalOwner(r.ID, who) != w.cfg.options[who].Owner {
				w.fail("take-over", "%s is taken over, of another owner", idName(r.ID))
			}
		}
		if !goesOn {
			w.checkOrder(who, out)
			*h.flag(r.Proposed) &^= taking
		}
	case AimRelease:
		if h.returning == AimRelease && !h.excused && *h.flag(r.ID)&unknown != 0 && !slices.ContainsFunc(h.m.commands.waiting, call.isCleanup) {
			w.fail("late-release", "%s is released again because a release has returned late", idName(r.ID))
		}
		if h.inc.alive && r.ID == h.inc.id {
			w.fail("release-held", "%s is released, which is held", idName(r.ID))
		}
		for _, g := range h.guarded.slice() {
			if g.id == r.ID && (g.due.IsZero() || w.now(who).Before(g.due)) {
				w.fail("deferral", "%s is released, and its work has not stopped", idName(r.ID))
			}
		}
		newer := false
		for i := range h.m.ledger {
			c := &h.m.ledger[i]
			if newer && c.phase == pending && after != AimProbe {
				w.fail("order", "an older ID is released first")
			}
			newer = newer || c.id == r.ID
		}
		if after != AimProbe && slices.ContainsFunc(h.m.commands.waiting, func(c call) bool { return c.op == OpHandOver && c.refused == nil }) {
			w.fail("order", "a release overtakes a hand-over")
		}
		*h.flag(r.ID) |= retired
		*h.flag(r.ID) &^= unreleased
		for i, g := range h.guarded.slice() {
			if g.id == r.ID {
				h.guarded.remove(i)
				break
			}
		}
	case AimProbe:
		if w.cfg.options[who].Duration != lease.Infinite {
			w.fail("probe", "a finite lease is acquired to release it")
		}
		if *h.flag(r.Proposed)&doubt == 0 {
			w.fail("probe", "%s is acquired to release it, and is not in doubt", idName(r.Proposed))
		}
		if *h.flag(r.Proposed)&probed != 0 {
			w.fail("probe", "%s is acquired a second time to release it", idName(r.Proposed))
		}
	case AimHandOver:
		if !w.hasCall(who, OpHandOver) && !w.cfg.cancels {
			w.fail("hand-over", "a hand-over is sent without a call of HandOver")
		}
		*h.flag(r.ID) |= handed
		if *h.flag(r.ID)&used == 0 {
			w.fail("hand-over", "%s is handed over, and was never held", idName(r.ID))
		}
	}
}

// rivalOwner returns the owner of an ID.
func (w *world) rivalOwner(id lease.ID, who int) string {
	switch id[0] {
	case rivalsIDs:
		return w.cfg.rivalOwner
	case 1, 2:
		if ours(id, who) {
			w.fail("take-over", "%s is taken over from itself", idName(id))
		}
		return w.cfg.options[id[0]-1].Owner
	}
	return "?"
}

// checkOrder checks that an Acquire is not sent before a command that must come first.
func (w *world) checkOrder(who int, out Effects) {
	h := &w.h[who]
	for _, o := range []Op{OpHandOver, OpRelease, OpReleaseUncertain} {
		if w.hasCallBut(who, o, out) {
			w.fail("order", "an Acquire overtakes another call")
		}
	}
	for i, f := range h.flags {
		if f&unreleased != 0 {
			w.fail("order", "an Acquire overtakes the release of %s%d", name(who), i)
		}
	}
}

func (w *world) hasCall(who int, o Op) bool { return w.hasCallBut(who, o, Effects{}) }

// hasCallBut reports whether a call with the operation o waits and is not answered in this step.
func (w *world) hasCallBut(who int, o Op, out Effects) bool {
	for _, c := range w.h[who].calls.slice() {
		if c.op == o && answerTo(out, c.number) == nil {
			return true
		}
	}
	return false
}

// checkWaiting checks that a request is in flight for each call that waits and for each release
// that is due.
func (w *world) checkWaiting(who int) {
	h := &w.h[who]
	if w.problem != nil || w.commands(who) > 0 {
		return
	}
	for _, c := range h.calls.slice() {
		if c.op != OpWait {
			w.fail("calls-wait", "call %d waits, and nothing is in flight", c.number)
		}
	}
	if h.stuck >= mostStuck {
		return
	}
	for i, f := range h.flags {
		if f&unreleased != 0 {
			w.fail("unreleased", "%s%d must be released, and nothing is in flight", name(who), i)
		}
	}
}

// holdsUntil reports whether the holder was closed while it held the lease until MinHold. Then
// the lease ends by itself.
func (h *holder) holdsUntil(id lease.ID) bool { return h.closed && *h.flag(id)&holdsUntil != 0 }

// checkReleased checks that no ID of the holder is in force when a Release returns nil.
func (w *world) checkReleased(who int) {
	rec := w.rec.At(w.authorityNow())
	if w.cfg.world.has(evDuplicate) || w.h[who].holdsUntil(rec.ID) {
		return
	}
	if rec.State.Locked() && ours(rec.ID, who) && *w.h[who].flag(rec.ID)&(doubt|disclosed) == 0 && !w.justBroken(rec) {
		w.fail("released", "Release returns nil, and %s is in force", idName(rec.ID))
	}
}

// justBroken reports whether a record shows a lease that its holder has lost by a break, and that
// is locked until the break is over. The machine need not release such a lease.
func (w *world) justBroken(rec lease.Record) bool {
	return rec.State == lease.Breaking && rec.ID[0] != rivalsIDs && *w.h[rec.ID[0]-1].flag(rec.ID)&over != 0
}

// checkSettled checks that the proposed ID cannot be in force.
func (w *world) checkSettled(who int) {
	h := &w.h[who]
	if w.commands(who) > 0 || w.hasCall(who, OpAcquire) {
		return
	}
	for i := range h.flags {
		if f := h.flags[i]; f&doubt != 0 && f&(retired|used) == 0 {
			w.fail("settled", "a settle returns nil, and %s%d may be in force", name(who), i)
		}
	}
}

// checkTime checks the properties that depend on the time, after an input and after a tick.
func (w *world) checkTime(who int) {
	h, now := &w.h[who], w.now(who)
	for i := 0; i < int(h.guarded.n); i++ {
		if g := h.guarded.all[i]; !g.due.IsZero() && now.After(g.due.Add(2)) {
			if c := h.m.ledger.find(g.id); c != nil && (c.phase == deferred || c.phase == heldUntil) {
				w.fail("deferral", "%s is due and not released", idName(g.id))
			}
			h.guarded.remove(i)
			i--
		}
	}
	if h.inc.alive && w.inWindow(who) {
		for _, c := range h.contexts.slice() {
			if c.id == h.inc.id && !c.ended {
				w.fail("stop-window", "a context has not ended, and the stop window has begun")
			}
		}
	}
	if h.inc.alive && !w.inWindow(who) {
		h.inc.stopped = false
	}
	sleep := h.m.Sleep(now)
	if sleep <= 0 {
		w.fail("sleep", "the machine does not sleep")
	}
	if h.inc.alive && !h.inc.until.IsZero() {
		left := h.inc.until.Sub(now)
		if !h.inc.stopped {
			left -= w.cfg.options[who].StopWindow
		}
		if sleep > left {
			w.fail("sleep", "the machine sleeps %v, and %v are left", sleep, left)
		}
	}
	canRenew := h.stuck < mostStuck && w.allRenewals(who) < mostStuck
	if h.inc.alive && canRenew && w.renewals(who) == 0 && sleep > w.cfg.options[who].RenewInterval {
		w.fail("sleep", "the machine sleeps %v, and no renewal is in flight", sleep)
	}
	for _, g := range h.guarded.slice() {
		if !g.due.IsZero() && now.Before(g.due) && sleep > g.due.Sub(now)+2 {
			w.fail("sleep", "the machine sleeps %v, and a release is due", sleep)
		}
	}
}

// checkSafe checks that each lease in which a machine believes is locked. The search calls
// checkSafe in every state.
func (w *world) checkSafe() {
	rec := w.rec.At(w.authorityNow())
	for i := range w.cfg.holders {
		h := &w.h[i]
		b := h.m.term.belief
		if b == nil || b.Left(&w.cfg.options[i], w.now(i)) <= 0 || h.inc.excused {
			continue
		}
		if !rec.State.Locked() || rec.ID != b.ID {
			w.fail("belief", "%s believes in %s, and the record is %s", name(i), idName(b.ID), w.recordText(rec))
		}
	}
}
