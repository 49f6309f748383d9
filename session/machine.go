package session

import (
	"cmp"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/dice"
)

// A machine is a holder without a clock, a lock and a goroutine. It decides everything that a
// Session decides: which request goes next, what an answer means, what is believed, what is
// released and when, which call is answered, who is notified, and when to wake up.
//
// Each method is one input. It is given the time, and leaves in effects what the shell has to
// do. The shell is session.go and the files around it.
//
// TestExplore runs a machine through every order of inputs, and TestPlantedBugs replaces texts of
// this package, each of which must occur once. CONTRIBUTING.md lists what a change has to touch.
//
// # Order of commands
//
// At most one command is in flight, besides at most one renewal. When a command has been
// answered, the next one is the first of these that there is:
//
//  1. the hand-over that was called first;
//  2. the release of the newest pending ID, if a call waits for it or a clean-up is due;
//  3. the Acquire that was called first.
//
// So an Acquire never overtakes the release of an ID of ours that might be in its way. A release
// without a certain outcome is not repeated by itself: it waits for the next Release, Close, or
// refusal that names the ID, and keeps no Acquire from being sent.
type machine struct {
	o        *Options // complete
	name     string   // of the lease
	random   dice.Random
	ledger   ledger
	term     term // the incarnation that is held, or was held last
	commands commands
	failing  streak
	unique   bool // no other holder has this owner
	closed   bool
	out      *effects // nil: none
}

// commands are the calls that wait, and the command that is in flight for one of them.
type commands struct {
	inFlight *request // nil: none
	serving  ticket   // the Acquire or HandOver that inFlight is for; zero if it was abandoned
	waiting  []call   // in the order of their calls
	cleaning bool     // pending IDs are to be released now
	tookOver bool     // the Acquire in service has tried to take the lease over
	changed  bool     // and the authority has changed the ID in force to its own
	stuck    int      // requests that were given up and have not returned
}

// mostStuck is how many requests may be outstanding that were given up. With so many the
// authority is asked nothing more until one of them returns. There can be one more: with one
// stuck, a command and a renewal may be in flight, and both may get stuck.
const mostStuck = 2

var (
	errUnsettled = errors.New("held by an earlier incarnation of this session, whose release is being tried again")
	errDeferred  = errors.New("held by an earlier incarnation of this session, whose work has not stopped")
	errStuck     = errors.New("two requests to the authority were given up and have not returned, and nothing is sent until one does")
	errOther     = errors.New("the authority granted something other than what was asked for")
)

// --- Calls

// acquire begins an Acquire.
func (m *machine) acquire(now time.Time, n uint64) {
	m.tick(now)
	c := call{ticket: ticket{n, opAcquire}}
	switch {
	case m.closed:
		m.answer(c.ticket, lease.ErrClosed)
	case m.term.belief != nil:
		m.answer(c.ticket, nil)
	default:
		m.wait(c)
	}
	m.advance(now)
}

// release begins a Release: it supersedes every Acquire and gives up whatever may be in force.
func (m *machine) release(now time.Time, n uint64) {
	m.tick(now)
	m.supersede()
	if m.term.belief != nil {
		m.end(pending, lease.ErrReleased)
	}
	m.ledger.releaseAll(m.o.Duration == lease.Infinite)
	m.commands.cleaning = true
	m.wait(call{ticket: ticket{n, opRelease}})
	m.advance(now)
}

// close is a Release after which every Acquire is refused.
func (m *machine) close(now time.Time, n uint64) {
	m.closed = true
	m.release(now, n)
}

// settle begins a release of what an Acquire of unknown outcome may have been granted. It leaves
// alone what is held, and what other calls are trying.
func (m *machine) settle(now time.Time, n uint64) {
	m.tick(now)
	m.commands.cleaning = true
	m.wait(call{ticket: ticket{n, opSettle}})
	m.advance(now)
}

// handOver begins a HandOver. The incarnation ends before the request is sent: once the
// authority has carried it out the receiver may hold.
func (m *machine) handOver(now time.Time, n uint64, to lease.ID) {
	m.tick(now)
	c := call{ticket: ticket{n, opHandOver}, to: to}
	from := cmp.Or(m.ledger.newest(held), m.ledger.newest(given))
	switch {
	case from == nil:
		m.answer(c.ticket, lease.ErrNotHeld)
	case to.IsZero() || to == from.id:
		m.answer(c.ticket, &lease.FieldError{Field: "to", Value: to.String(), Bound: "must be the ID of another session", Code: lease.ErrProposed})
	default:
		if from.phase == held {
			m.supersede()
			m.end(given, lease.ErrReleased)
		}
		m.wait(c)
	}
	m.advance(now)
}

// await begins a Wait. The shell looks at the record; Release, HandOver and Close end the call.
func (m *machine) await(now time.Time, n uint64) {
	c := call{ticket: ticket{n, opWait}}
	if m.closed {
		m.answer(c.ticket, nil)
	} else {
		m.wait(c)
	}
	m.advance(now)
}

// cancel answers a call whose caller waits no longer. Its request is undone, if it is an
// Acquire, and goes on otherwise.
func (m *machine) cancel(now time.Time, n uint64, err error) {
	m.tick(now)
	q := &m.commands
	if q.serving.number == n && n != 0 {
		if q.serving.op == opAcquire {
			m.abandon(err)
		} else {
			m.answer(q.serving, err)
			q.serving.number = 0
		}
	}
	for i, c := range q.waiting {
		if c.number == n {
			m.answer(c.ticket, err)
			if c.op == opAcquire || c.op == opWait {
				q.remove(i)
			} else {
				q.waiting[i].number = 0
			}
			break
		}
	}
	m.advance(now)
}

// disclose returns the ID that is held, or else the one that the next Acquire proposes, and
// notes that others may hand the lease over to it. A closed holder has none.
func (m *machine) disclose(now time.Time) lease.ID {
	m.tick(now)
	defer m.advance(now)
	if m.closed {
		return lease.ID{}
	}
	c := m.proposal()
	c.disclosed = true
	return c.id
}

// --- Work

// bind counts a context of WhileHeld, and returns the ID that its work is under. If the work must
// not begin the error says why, and nothing is counted.
func (m *machine) bind(now time.Time) (lease.ID, error) {
	m.tick(now)
	defer m.advance(now)
	switch {
	case m.term.belief == nil:
		return lease.ID{}, lease.ErrNotHeld
	case m.term.stopped: // before the work has begun
		return lease.ID{}, m.stopping()
	}
	c := m.ledger.newest(held)
	c.contexts++
	return c.id, nil
}

// unbind notes that the work under a context has stopped. With the last of it a deferred release
// is due.
func (m *machine) unbind(now time.Time, id lease.ID) {
	m.tick(now)
	if c := m.ledger.find(id); c != nil {
		c.contexts--
		if c.contexts == 0 && c.phase == deferred {
			m.clean(c)
		}
	}
	m.advance(now)
}

// --- Time

// advance notices what the passing of time has done, and sends what can be sent. Every input
// ends with it.
func (m *machine) advance(now time.Time) {
	m.tick(now)
	m.next(now)
}

// tick notices what the passing of time has done. Every input begins with it, so that what is
// held is certain and an answer that comes too late changes nothing.
func (m *machine) tick(now time.Time) {
	m.term.tick(m, now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.phase == deferred && !c.due.IsZero() && !now.Before(c.due) {
			m.clean(c)
		}
	}
}

// sleep is how long the shell may sleep until it calls advance again; lease.Infinite: forever.
func (m *machine) sleep(now time.Time) time.Duration {
	wait := m.term.sleep(m, now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.phase == deferred && !c.due.IsZero() {
			wait = min(wait, c.due.Sub(now))
		}
	}
	return max(wait, 0)
}

// take returns the effects of the inputs since the last call.
func (m *machine) take() effects {
	var out effects
	if m.out != nil {
		out, m.out = *m.out, nil
	}
	return out
}

// effects returns where an input leaves its effects.
func (m *machine) effects() *effects {
	if m.out == nil {
		m.out = new(effects)
	}
	return m.out
}

// takes reports whether an Acquire may be granted although the record is locked: it shows an ID of
// ours, or the lease can be taken over. Work that has not stopped keeps a deferred ID locked.
func (m *machine) takes(rec lease.Record) bool {
	if c := m.ledger.find(rec.ID); c != nil {
		return c.phase != deferred
	}
	return m.o.TakeOver && rec.Owner == m.o.Owner && rec.State == lease.Leased
}

// --- The parts of decisions

// proposal returns the claim that is held or proposed, and makes one if there is none.
func (m *machine) proposal() *claim {
	for _, p := range []phase{held, proposed} {
		if c := m.ledger.newest(p); c != nil {
			return c
		}
	}
	return m.ledger.propose(m.random.ID())
}

// clean makes an ID pending, to be released now.
func (m *machine) clean(c *claim) {
	c.phase = pending
	m.commands.cleaning = true
}

// supersede ends every Acquire and every Wait.
func (m *machine) supersede() {
	m.abandon(lease.ErrReleased)
	m.answerAll(opAcquire, lease.ErrReleased)
	m.answerAll(opWait, nil)
}

func (m *machine) answerAll(o op, err error) {
	for c, ok := m.commands.pop(o); ok; c, ok = m.commands.pop(o) {
		m.answer(c.ticket, err)
	}
}

// abandon ends the Acquire in service. Its ID is pending, and is released after the request that
// is in flight was answered: a release that overtook it would do nothing.
func (m *machine) abandon(err error) {
	c := m.commands.serving
	if c.op != opAcquire {
		return
	}
	m.clean(m.ledger.find(m.commands.inFlight.Proposed))
	m.commands.serving = ticket{}
	m.answer(c, err)
}

// wait puts a call at the end of the line.
func (m *machine) wait(c call) { m.commands.waiting = append(m.commands.waiting, c) }

// answer ends a call. An Acquire without an error holds if anything is held.
func (m *machine) answer(c ticket, err error) {
	if c.number == 0 {
		return
	}
	o := outcome{call: c.number, op: c.op, err: err}
	if b := m.term.belief; b != nil && c.op == opAcquire && err == nil {
		o.token = b.token
	}
	m.effects().answers = append(m.effects().answers, o)
}

// report adds an event.
func (m *machine) report(event any) { m.effects().report = append(m.effects().report, event) }

// pop takes the first call of a kind out of the line.
func (q *commands) pop(o op) (call, bool) {
	for i, c := range q.waiting {
		if c.op == o && c.refused == nil {
			q.remove(i)
			return c, true
		}
	}
	return call{}, false
}

// last returns the number of the last call that waits until pending IDs are released, or 0.
func (q *commands) last() (number uint64) {
	for _, c := range q.waiting {
		if c.cleans() {
			number = max(number, c.number)
		}
	}
	return number
}

// tooManyStuck reports whether so many requests are stuck that nothing may be sent.
func (q *commands) tooManyStuck() bool { return q.stuck >= mostStuck }

// remove takes a call out of the line. An empty line keeps no memory.
func (q *commands) remove(i int) {
	if q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...); len(q.waiting) == 0 {
		q.waiting = nil
	}
}
