package holder

import (
	"time"

	"github.com/fencedlease/lease"
)

// A term is one period of holding the lease, from a granted Acquire to its release or loss.
type term struct {
	number  uint64  // counts the terms, so that the machine detects an answer for an earlier term
	belief  *Belief // nil if nothing is held
	renewal renewal
	notice  *notice // of the last answer that reported a break; nil if the newest answer shows no break
	failed  error   // error of the last answered renewal if that renewal has failed
	stopped bool    // the contexts of WhileHeld have ended, and no later renewal has ended the stop window
}

// A renewal value contains the times of the last and of the next renewal of a term. While a
// renewal is in flight, no other renewal is sent.
type renewal struct {
	inFlight bool
	again    bool // another renewal is due at the answer to the renewal in flight, unless the renewal in flight fails

	// The field at is the time at which the next renewal is due. After a granted request or the
	// report of a break, the method Machine.pace computes this due time. After a failed renewal,
	// the method retry sets the due time. After a signal of a watch, the method hasten sets the due
	// time.
	at time.Time

	sent time.Time // when the last renewal was sent, or the Acquire if there was no renewal
}

// hasten makes a renewal due now, or as soon as the renewal in flight is answered. If that fails, the
// next is due after the usual RetryDelay.
func (r *renewal) hasten(now time.Time) { r.at, r.again = now, r.inFlight }

// retry makes a renewal due after a pause.
func (r *renewal) retry(now time.Time, pause time.Duration) { r.at, r.again = now.Add(pause), false }

// A notice describes a break as the last answer reported it. Its times are on the clock of the
// authority.
type notice struct {
	at   time.Time     // the time of the answer
	left time.Duration // how long the lease certainly lasts after the answer
	end  time.Time     // the end of the break that was last reported to the handlers of OnBreaking
}

// begin begins a term, during which no other ID of this holder is in force.
func (m *Machine) begin(b *Belief) {
	m.ledger.find(b.ID).phase = held
	m.ledger.clearAllBut(b.ID)
	m.term = term{number: m.term.number + 1, belief: b}
	m.term.renewal = renewal{at: m.pace(b.Sent, 0.9), sent: b.Sent}
	m.lost = nil
	m.effects().Began = true
}

// tickTerm ends the term if the belief has ended, and otherwise begins the stop window and sends
// a renewal if they are due.
func (m *Machine) tickTerm(now time.Time) {
	t := &m.term
	if t.belief == nil {
		return
	}
	left := t.belief.Left(m.o, now)
	switch {
	case left <= 0 && t.notice == nil:
		m.lose(lease.ErrExpired, t.failed)
		return
	case left <= 0:
		m.lose(lease.ErrBroken, t.failed)
		return
	case left <= m.o.Window() && !t.stopped:
		t.stopped = true
		m.effects().Stop = m.stopReason()
	}
	if m.canRenew() && !now.Before(t.renewal.at) {
		t.renewal.inFlight, t.renewal.sent = true, now
		m.renewals++
		m.effects().Send = append(m.effects().Send, Request{
			Request: lease.Request{Action: lease.ActionRenew, ID: t.belief.ID}, Aim: AimRenew, Term: t.number, Sent: now})
	}
}

// sleepTerm returns the time after which tickTerm must be called at the latest, or lease.Infinite if
// never.
func (m *Machine) sleepTerm(now time.Time) time.Duration {
	t := &m.term
	if t.belief == nil {
		return lease.Infinite
	}
	wait := t.belief.Left(m.o, now)
	if wait != lease.Infinite && !t.stopped {
		wait -= m.o.Window()
	}
	if m.canRenew() {
		wait = min(wait, t.renewal.at.Sub(now))
	}
	return wait
}

// Patience returns until when the last renewal may wait to be sent because the server is busy: as long as an answer can
// still come before the stop window, but not longer than three times the RequestTimeout, because Close waits for it. It
// is the zero time if no end of the belief is known.
func (m *Machine) Patience() time.Time {
	b := m.term.belief
	if b == nil || b.Budget == lease.Infinite {
		return time.Time{}
	}
	useful, longest := b.Until().Add(-m.o.Window()-m.o.RequestTimeout), m.term.renewal.sent.Add(3*m.o.RequestTimeout)
	if longest.Before(useful) {
		return longest
	}
	return useful
}

// canRenew reports whether a renewal can be sent when it is due. Renewals of earlier terms can
// still be in flight, and their number has a bound too.
func (m *Machine) canRenew() bool {
	return !m.term.renewal.inFlight && m.renewals < mostStuck && !m.commands.tooManyStuck()
}

// pace returns when the next renewal is due after a request that was sent at sentAt and was granted, or
// reported a break. The delay is the RenewInterval or half of the time for which the belief lasts,
// whichever is shorter. It is shortened at random: by up to nine tenths before the first renewal, so that
// leases that were acquired together are renewed at different times, and by up to one tenth later.
//
// The delay is at least one Margin. Otherwise a store that assumes a larger clock drift than the
// Session could make the delays shorter and shorter.
//
// The time is rounded down by less than 1/500 of the delay, so that a process with thousands of leases
// wakes up once for several renewals.
func (m *Machine) pace(sentAt time.Time, shorten float64) time.Time {
	d := min(m.o.RenewInterval, max(m.term.belief.Budget/2, m.o.Margin))
	drawn := m.random.Shorten(d, shorten)
	at := sentAt.Add(drawn)
	if tick := d / 500; drawn < d && tick > 0 {
		at = at.Add(-time.Duration(at.Nanosecond()) % tick)
	}
	return at
}

// noteBreak records that the lease ends when a break is over, by the earliest end that any answer
// reports. The handlers of OnBreaking are called at the first such answer, and again if a later one
// moves the end to an earlier time by more than Margin.
func (m *Machine) noteBreak(b *Belief, now time.Time, res lease.Result) {
	t := &m.term
	if b.Left(m.o, now) < t.belief.Left(m.o, now) {
		t.belief = b
	}
	if t.belief.Left(m.o, now) <= 0 { // the break was over before the answer came
		m.lose(lease.ErrBroken, nil)
		return
	}
	if t.notice != nil && res.Now.Before(t.notice.at) {
		return // a late answer
	}
	news := notice{at: res.Now, end: res.Record.Until, left: res.MinRemaining}
	if t.notice == nil || news.endsEarlier(t.notice, m.o.Margin) {
		m.report(Breaking{Token: b.Token, Until: t.belief.Until()})
	} else {
		news.end = t.notice.end
	}
	t.notice = &news
}

// endsEarlier reports whether the notice n moves the end of the break to an earlier time than the
// previous notice, by more than margin. Some authorities report only how much time is left. That may fall
// by the elapsed time, by an eighth of it for the rates of the clocks, and by margin.
func (n *notice) endsEarlier(last *notice, margin time.Duration) bool {
	elapsed := n.at.Sub(last.at)
	return n.end.Before(last.end.Add(-margin)) || n.left < last.left-elapsed-elapsed/8-margin
}

// Read handles a record that watchHeld has read. If it does not say that this Session holds the
// lease, a renewal is due at once, whose answer decides whether the lease is lost.
func (m *Machine) Read(now time.Time, id lease.ID, rec lease.Record) {
	ours := rec.State == lease.Leased && (rec.ID == id || rec.ID.IsZero())
	if t := &m.term; t.belief != nil && t.belief.ID == id && (!ours || isNewer(rec, t.belief)) {
		t.renewal.hasten(now)
	}
}
