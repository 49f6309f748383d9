package session

import (
	"time"

	"github.com/fencedlease/lease"
)

// A term is one incarnation: from a granted Acquire to its release or loss.
type term struct {
	number  uint64  // counts the incarnations; an answer to an earlier one is known by it
	belief  *belief // nil: nothing is held
	renewal renewal
	notice  *notice // nil: the handlers of OnBreaking were not called
	failed  error   // of the last renewal, if it was not granted
	stopped bool    // the contexts of WhileHeld were ended, and no renewal has moved U since
}

// A renewal is when the next one is due. While one is in flight none is.
type renewal struct {
	inFlight bool
	again    bool // another is due as soon as the one in flight was answered

	// at is when the next one is due: an interval after the sending of the last request that was
	// granted (pace), a RetryDelay after the answer that was none (retry), or at once, after a signal
	// (hasten). A signal can move it to a later time, if it is overdue already.
	at time.Time

	sent time.Time // the last one, or the Acquire
}

// hasten makes a renewal due now, or as soon as the one in flight was answered.
func (r *renewal) hasten(now time.Time) { r.at, r.again = now, r.inFlight }

// retry makes a renewal due after a pause.
func (r *renewal) retry(now time.Time, pause time.Duration) { r.at, r.again = now.Add(pause), false }

// A notice is what is known of a break, in the authority's time.
type notice struct {
	at   time.Time     // of the last answer
	left time.Duration // certain then, at least
	end  time.Time     // of the break, as the handlers of OnBreaking were told
}

// begin begins an incarnation. Nothing else of this holder is in force any more.
func (m *machine) begin(c *claim, b *belief) {
	c.phase = held
	m.ledger.settleAllBut(b.id)
	m.term = term{number: m.term.number + 1, belief: b}
	m.term.renewal = renewal{at: m.pace(b.sent, 0.9), sent: b.sent}
	m.effects().began = true
}

// end ends the incarnation. Its ID is in phase p from now on.
func (m *machine) end(p phase, cause error) {
	c := m.ledger.newest(held)
	m.term.belief = nil
	m.effects().ended = cause
	if c.phase = p; p == settled {
		m.ledger.settle(c)
	}
}

func (m *machine) lost(reason lease.Code, err error) *lease.LostError {
	return &lease.LostError{Name: m.name, Token: m.term.belief.token, Reason: reason, Err: err}
}

// stopping is why work must stop in the stop window: renewals have failed, or the lease is breaking.
func (m *machine) stopping() *lease.LostError {
	err := m.term.failed
	if err == nil && m.term.notice != nil {
		err = lease.ErrBroken
	}
	return m.lost(lease.ErrStopWindow, err)
}

// lose ends the incarnation as lost. If a renewal, or an earlier Acquire, may have been granted
// without an answer, its ID is released, so that the lease does not stay locked for a whole
// duration. That waits for the work that is still stopping: until the last context of WhileHeld
// was given back, or until what the last renewal may have been granted is over.
func (m *machine) lose(reason lease.Code, err error) {
	lost, c := m.lost(reason, err), m.ledger.newest(held)
	switch {
	case reason != lease.ErrExpired && !c.inDoubt:
		m.end(settled, lost)
	case c.contexts > 0:
		if m.o.Duration != lease.Infinite {
			c.due = m.term.renewal.sent.Add(m.o.RequestTimeout + m.o.most(m.o.Duration))
		}
		m.end(deferred, lost)
	default:
		m.commands.cleaning = true
		m.end(pending, lost)
	}
	m.report(lost)
}

// tick notices the end of the belief, the beginning of the stop window, and a renewal that is due.
func (t *term) tick(m *machine, now time.Time) {
	if t.belief == nil {
		return
	}
	left := t.belief.left(m.o, now)
	switch {
	case left <= 0 && t.notice == nil:
		m.lose(lease.ErrExpired, t.failed)
		return
	case left <= 0:
		m.lose(lease.ErrBroken, t.failed)
		return
	case left <= m.o.window() && !t.stopped:
		t.stopped = true
		m.effects().stop = m.stopping()
	}
	if !t.renewal.inFlight && !m.commands.tooManyStuck() && !now.Before(t.renewal.at) {
		t.renewal.inFlight, t.renewal.sent = true, now
		m.effects().send = append(m.effects().send, request{
			Request: lease.Request{Action: lease.ActionRenew, ID: t.belief.id}, aim: aimRenew, term: t.number, sent: now})
	}
}

// sleep is how long nothing of that can happen.
func (t *term) sleep(m *machine, now time.Time) time.Duration {
	if t.belief == nil {
		return lease.Infinite
	}
	wait := t.belief.left(m.o, now)
	if wait != lease.Infinite && !t.stopped {
		wait -= m.o.window()
	}
	if !t.renewal.inFlight && !m.commands.tooManyStuck() {
		wait = min(wait, t.renewal.at.Sub(now))
	}
	return wait
}

// pace is when the renewal after a request that was sent at the given time is due: after an interval,
// or after half of what is believed if that is less, shortened by up to the given part. That part is
// nine tenths for the first renewal, so that leases that were taken together are not renewed together,
// and a tenth for every other. Half of what is believed counts as a Margin at least: a store that
// counts with more clock drift than the Session shows less than half each time, so that halves never
// end.
func (m *machine) pace(sent time.Time, shorten float64) time.Time {
	d := min(m.o.RenewInterval, max(m.term.belief.budget/2, m.o.Margin))
	return sent.Add(m.random.Shorten(d, shorten))
}

// renewed takes the answer to a renewal.
func (m *machine) renewed(r request, now time.Time, res lease.Result, err error) {
	info := RenewInfo{Err: err, Took: now.Sub(r.sent)}
	t := &m.term
	if t.belief == nil || r.term != t.number {
		m.report(info)
		m.commands.cleaning = true // it may have been granted after its ID was released
		return
	}
	info.Token, info.Margin = t.belief.token, t.belief.left(m.o, now)
	m.report(info)
	t.renewal.inFlight = false

	rec, code := res.Record, lease.CodeOf(err)
	b := *t.belief
	b.sent, b.budget = r.sent, m.o.budget(min(m.o.Duration, res.MinRemaining))
	own := rec.ID == b.id
	switch {
	case own && rec.State == lease.Leased && (err == nil || code.Refusal() && b.left(m.o, now) > t.belief.left(m.o, now)):
		// Granted. So is a refusal that shows our ID in force: an earlier renewal was granted,
		// and its answer was lost.
		t.belief, t.notice, t.failed = &b, nil, nil
		t.stopped = t.stopped && b.left(m.o, now) <= m.o.window()
		t.renewal.at = m.pace(r.sent, 0.1)
	case own && rec.State == lease.Leased || !code.Refusal():
		if err == nil {
			err = errOther
		}
		t.failed = err
		t.renewal.retry(now, m.random.Shorten(m.o.RetryDelay, 0.5))
		m.failed("renewal", err)
	case own && rec.State == lease.Breaking && res.MinRemaining > 0:
		t.failed = nil
		m.breaking(&b, now, res)
		if t.belief == nil {
			return
		}
		t.renewal.at = m.pace(r.sent, 0.1)
	case own && (rec.State == lease.Breaking || rec.State == lease.Broken):
		m.lose(lease.ErrBroken, err)
		return
	case !own && !rec.ID.IsZero() && rec.State == lease.Leased && rec.Owner == m.o.Owner && !m.unique:
		m.lose(lease.ErrTakenOver, err)
		return
	default:
		m.lose(code, err)
		return
	}
	if t.renewal.again {
		t.renewal.hasten(now)
	}
}

// breaking notes that the lease ends when the break is over. The belief ends with the earliest
// end that an answer has shown. The handlers are called again only if the end moved.
func (m *machine) breaking(b *belief, now time.Time, res lease.Result) {
	t := &m.term
	if b.left(m.o, now) < t.belief.left(m.o, now) {
		t.belief = b
	}
	if t.belief.left(m.o, now) <= 0 { // the answer took longer than the break
		m.lose(lease.ErrBroken, nil)
		return
	}
	news := notice{at: res.Now, end: res.Record.Until, left: res.MinRemaining}
	if t.notice == nil || news.moved(t.notice, m.o.Margin) {
		m.report(breakInfo{token: b.token, until: t.belief.until()})
	} else {
		news.end = t.notice.end
	}
	t.notice = &news
}

// moved reports whether an answer shows an end earlier by more than margin: than the handlers were
// told, or, from an observer that knows no end, by what is left for certain since the last answer.
// For the difference of clocks that allows an eighth of the time in between.
func (n *notice) moved(last *notice, margin time.Duration) bool {
	elapsed := n.at.Sub(last.at)
	return n.end.Before(last.end.Add(-margin)) || n.left < last.left-elapsed-elapsed/8-margin
}

// looked takes a record that was read because a watch signalled. If it does not show the
// incarnation as leased a renewal is due at once, and its answer decides.
func (m *machine) looked(now time.Time, id lease.ID, rec lease.Record) {
	m.tick(now)
	ours := rec.State == lease.Leased && (rec.ID == id || rec.ID.IsZero())
	if t := &m.term; !ours && t.belief != nil && t.belief.id == id {
		t.renewal.hasten(now)
	}
	m.advance(now)
}

// A streak is a number of failures in a row. It is reported when it begins, and then at growing
// intervals.
type streak struct{ count int }

// failed reports a failed request, unless one of the same streak was reported not long ago.
func (m *machine) failed(what string, err error) {
	s := &m.failing
	s.count++
	if s.count&(s.count-1) == 0 { // the 1st, 2nd, 4th, 8th, ...
		m.report(failure{what: what, err: err, count: s.count})
	}
}
