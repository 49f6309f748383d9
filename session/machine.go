package session

import (
	"cmp"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/dice"
)

// A machine makes all decisions of a Session. It has no clock, no lock and no goroutine. It decides
// which request is sent next and what an answer means. The machine decides which calls are answered
// and which handlers are called. The machine also decides when a lease is released, and when the
// Session must call the machine again.
//
// Each input is a method that gets the current time. An input adds actions to the effects of the
// machine, and the Session then performs these actions. The Session is called the shell of the
// machine.
//
// TestExplore runs a machine through every order of inputs. TestPlantedBugs replaces pieces of the
// code of this package, and each piece must occur exactly once in its file. CONTRIBUTING.md lists the
// places that a change of the machine has to touch.
//
// # Order of commands
//
// At most one command and one renewal are in flight at the same time. When a command has been
// answered, the machine sends the first command of this list that there is:
//
//  1. the hand-over that was called first;
//  2. the release of the newest pending ID, if a call waits for it or a clean-up is due;
//  3. the Acquire that was called first.
//
// An Acquire never overtakes the release of an earlier ID of the same machine. If the outcome of a
// release is unknown, the machine does not retry the release at once. The next Release or Close
// retries it. If an Acquire is refused because the ID of that release is still in force, the machine
// also retries the release. Until then, Acquires are sent all the same.
type machine struct {
	o        *Options // complete
	name     string   // of the lease
	random   dice.Random
	ledger   ledger
	term     term // the incarnation that is held, or the last one that was held
	commands commands
	failing  streak
	unique   bool // the owner was made at random, so no other holder has it
	closed   bool
	out      *effects // nil if there are none
}

// The type commands contains the waiting calls, and the command that is in flight for one of them.
type commands struct {
	inFlight *request // nil if none is in flight
	serving  ticket   // the Acquire or HandOver that inFlight belongs to; zero if it was abandoned
	waiting  []call   // in the order in which they were called
	cleaning bool     // pending IDs have to be released now
	tookOver bool     // the Acquire in service has tried to take the lease over
	changed  bool     // the take-over has put our ID in force
	stuck    int      // number of stuck requests
}

// mostStuck limits the number of stuck requests, which were given up and have not returned. At the
// limit, the machine sends nothing until a stuck request returns. The number of stuck requests can be
// one above the limit, because a command and a renewal can both get stuck while one other request is
// stuck.
const mostStuck = 2

var (
	errUnsettled = errors.New("held by an earlier incarnation of this session, whose release is being tried again")
	errDeferred  = errors.New("held by an earlier incarnation of this session, whose work has not stopped")
	errStuck     = errors.New("two requests to the authority were given up and have not returned, and nothing is sent until one does")
	errOther     = errors.New("the authority granted something other than what was asked for")
)

// --- Calls

// acquire is the input that begins an Acquire.
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

// release begins a Release, which ends every unanswered Acquire and releases every ID that may be in
// force.
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

// close is like release, and makes every later Acquire fail.
func (m *machine) close(now time.Time, n uint64) {
	m.closed = true
	m.release(now, n)
}

// settle begins a Settle, which releases the lease in case an Acquire with an unknown outcome was
// granted. Unlike a Release, it does not end the held incarnation or the Acquires of other calls.
func (m *machine) settle(now time.Time, n uint64) {
	m.tick(now)
	m.commands.cleaning = true
	m.wait(call{ticket: ticket{n, opSettle}})
	m.advance(now)
}

// handOver begins a HandOver. The incarnation ends before the request is sent, because the receiver
// may hold the lease as soon as the authority has carried out the request.
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

// await begins a Wait. Until the Wait is answered, the Session keeps reading the record. Release,
// HandOver and Close answer it.
func (m *machine) await(now time.Time, n uint64) {
	c := call{ticket: ticket{n, opWait}}
	if m.closed {
		m.answer(c.ticket, nil)
	} else {
		m.wait(c)
	}
	m.advance(now)
}

// cancel answers a call whose caller no longer waits. If the call is an Acquire, its request is
// undone. The request of any other call continues.
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

// disclose returns the ID that is held, or the ID that the next Acquire proposes. It records that
// another holder may hand the lease over to this ID. For a closed machine it returns the zero ID.
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

// bind counts a context of WhileHeld, and returns the ID of its incarnation. If work must not begin
// now, bind returns the reason as an error, and does not count the context.
func (m *machine) bind(now time.Time) (lease.ID, error) {
	m.tick(now)
	defer m.advance(now)
	switch {
	case m.term.belief == nil:
		return lease.ID{}, lease.ErrNotHeld
	case m.term.stopped: // before the work has begun
		return lease.ID{}, m.stopReason()
	}
	c := m.ledger.newest(held)
	c.contexts++
	return c.id, nil
}

// unbind records that the work under a context has stopped. If no other work of a lost incarnation is
// running, its deferred release is sent.
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

// advance handles everything that is due at the time now, and then sends the next requests. Every
// input ends with a call of advance.
func (m *machine) advance(now time.Time) {
	m.tick(now)
	m.sendNext(now)
}

// tick handles everything that is due at the time now. Every input begins with a call of tick, so
// that a belief that has ended is dropped before the input is handled. So a late answer cannot
// extend it.
func (m *machine) tick(now time.Time) {
	m.term.tick(m, now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.phase == deferred && !c.due.IsZero() && !now.Before(c.due) {
			m.clean(c)
		}
	}
}

// sleep returns how long the Session may wait before it calls advance again. The result
// lease.Infinite means forever.
func (m *machine) sleep(now time.Time) time.Duration {
	wait := m.term.sleep(m, now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.phase == deferred && !c.due.IsZero() {
			wait = min(wait, c.due.Sub(now))
		}
	}
	return max(wait, 0)
}

// take returns the effects of the inputs since the last call of take.
func (m *machine) take() effects {
	var out effects
	if m.out != nil {
		out, m.out = *m.out, nil
	}
	return out
}

// effects returns the effects of the current input, so that the input can add to them.
func (m *machine) effects() *effects {
	if m.out == nil {
		m.out = new(effects)
	}
	return m.out
}

// canAcquire reports whether an Acquire may be granted although the lease is locked. An Acquire may
// be granted if the lease can be taken over, or if it is locked under an ID of this machine. If the
// release of that ID waits for work to stop, an Acquire cannot be granted yet.
func (m *machine) canAcquire(rec lease.Record) bool {
	if c := m.ledger.find(rec.ID); c != nil {
		return c.phase != deferred
	}
	return m.o.TakeOver && rec.Owner == m.o.Owner && rec.State == lease.Leased
}

// --- The parts of decisions

// proposal returns the claim that is held or proposed. If there is none, it proposes a new ID.
func (m *machine) proposal() *claim {
	for _, p := range []phase{held, proposed} {
		if c := m.ledger.newest(p); c != nil {
			return c
		}
	}
	return m.ledger.propose(m.random.ID())
}

// clean marks an ID for release, and begins to release all such IDs.
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

// abandon ends the Acquire in service. The ID of this Acquire is released only after its request is
// answered. If the release were sent earlier, it could reach the authority before the request, and
// would then release nothing.
func (m *machine) abandon(err error) {
	c := m.commands.serving
	if c.op != opAcquire {
		return
	}
	m.clean(m.ledger.find(m.commands.inFlight.Proposed))
	m.commands.serving = ticket{}
	m.answer(c, err)
}

// wait puts a call at the end of the queue.
func (m *machine) wait(c call) { m.commands.waiting = append(m.commands.waiting, c) }

// answer ends a call. If an Acquire succeeds, its answer has the token of the held incarnation.
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

// report adds an event to the effects.
func (m *machine) report(event any) { m.effects().report = append(m.effects().report, event) }

// pop removes the first call with operation o from the queue, and returns it. A refused hand-over
// stays in the queue until the lease is released.
func (q *commands) pop(o op) (call, bool) {
	for i, c := range q.waiting {
		if c.op == o && c.refused == nil {
			q.remove(i)
			return c, true
		}
	}
	return call{}, false
}

// last returns the number of the last call that waits for releases. If there is none, it returns 0.
func (q *commands) last() (number uint64) {
	for _, c := range q.waiting {
		if c.cleans() {
			number = max(number, c.number)
		}
	}
	return number
}

// tooManyStuck reports whether nothing may be sent because too many requests are stuck.
func (q *commands) tooManyStuck() bool { return q.stuck >= mostStuck }

// remove removes call number i of the queue. An empty queue uses no memory.
func (q *commands) remove(i int) {
	if q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...); len(q.waiting) == 0 {
		q.waiting = nil
	}
}
