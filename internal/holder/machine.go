// Package holder makes all decisions of a session.Session, without a clock, a lock or a goroutine.
package holder

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A Machine makes all decisions of a Session: which request is sent next, what follows from an answer,
// which calls are answered and which handlers called, when a lease is released, and when it must be
// called again. It has no clock, no lock and no goroutine.
//
// Each input is a method that Handle calls. It sends nothing and calls no handler, but lists both in the
// struct Effects, which the Session, the shell of the machine, performs afterwards.
//
// TestExplore tries many orders of inputs, breadth-first. TestPlantedBugs replaces pieces of the source
// code of this package, each of which must occur exactly once in its file. If you change the machine,
// look in CONTRIBUTING.md for what else you must change.
//
// # Order of commands
//
// At most one command is in flight at any time. Each term can also have one renewal in flight,
// and all together two. While no command is in flight, each input sends the first of these that it
// finds:
//
//  1. the hand-over that was called first;
//  2. the release of the newest pending ID;
//  3. the Acquire that was called first.
//
// While an ID is pending, no Acquire is sent; a deferred release does not delay one. If the outcome of
// a release is unknown, all IDs that were pending when it was sent become unsettled. They do not delay
// an Acquire, and are released by the next Release, Close or ReleaseUncertain, or after an answer that shows them
// in force.
type Machine struct {
	o        *Options // complete
	name     string   // of the lease
	random   Random
	ledger   ledger
	term     term // the one that is held, or the last one that was held
	commands commands
	failures int  // number of failed requests in a row
	unique   bool // the owner was made at random, so no other holder has the same owner
	closed   bool
	renewals int              // number of renewals in flight, of all terms
	lost     *lease.LostError // the last loss, if no Acquire and no Release has followed it
	out      *Effects         // nil if there are no effects
}

// New returns the machine of a holder of the named lease. If unique is true, no other holder has the Owner of o.
func New(o *Options, name string, random Random, unique bool) Machine {
	return Machine{o: o, name: name, random: random, unique: unique}
}

// Belief returns what the machine believes, or nil if nothing is held.
func (m *Machine) Belief() *Belief { return m.term.belief }

// ForgetLoss makes the next Release return nil, although the lease was lost.
func (m *Machine) ForgetLoss() { m.lost = nil }

// A commands value contains the calls that have no answer yet, and the command in flight.
type commands struct {
	inFlight *Request // nil if no command is in flight
	serving  ticket   // the Acquire or HandOver to which inFlight belongs; zero for a release or a probe, and after an Acquire was abandoned
	waiting  []call   // in the order of the calls
	stuck    int      // number of stuck requests

	triedTakeOver bool // whether the Acquire in service has tried to take the lease over
	tookOver      bool // whether the take-over has put the ID of this Session in force
}

// A request is stuck if the Session has given it up and it has not returned yet. While mostStuck or
// more are stuck, no request is sent. Their number can exceed mostStuck, because requests that are in flight
// beside a stuck request can get stuck too.
const mostStuck = 2

var (
	errUnsettled = errors.New("held by an earlier term of this session, whose release is being tried again")
	errDeferred  = errors.New("held by an earlier term of this session, whose work has not stopped")
	errStuck     = errors.New("two requests to the authority were given up and have not returned, and only reads are sent until one does")
	errOther     = errors.New("the authority granted something other than what was asked for")
)

// --- Calls

// Acquire begins an Acquire.
func (m *Machine) Acquire(n uint64) {
	waiting := call{ticket: ticket{n, OpAcquire}}
	switch {
	case m.closed:
		m.answer(waiting.ticket, lease.ErrClosed)
	case m.term.belief != nil:
		m.answer(waiting.ticket, nil)
	default:
		m.enqueue(waiting)
	}
}

// Release begins a Release, which ends every unanswered Acquire and releases every ID that may be in
// force.
func (m *Machine) Release(n uint64) {
	m.relinquish(call{ticket: ticket{n, OpRelease}, lost: m.lost})
	m.lost = nil
}

// Close is like the input Release, but does not report an earlier loss. After Close, Acquire and
// HandOver fail, ID returns the zero ID, and Wait returns at once. An ID in the phase heldUntil is not
// released: its lease ends by itself.
func (m *Machine) Close(n uint64) {
	m.closed = true
	for c := m.ledger.newest(heldUntil); c != nil; c = m.ledger.newest(heldUntil) {
		m.ledger.clear(c)
	}
	m.relinquish(call{ticket: ticket{n, OpRelease}})
}

// relinquish ends what is held or being acquired, and begins a call that waits for the releases.
func (m *Machine) relinquish(c call) {
	m.supersede()
	if m.term.belief != nil {
		m.end(endsByRelease, 0, nil)
	}
	m.ledger.releaseAll(m.o.Duration == lease.Infinite)
	m.enqueue(c)
}

// ReleaseUncertain begins a call that releases what an Acquire with an unknown outcome may have acquired.
// Unlike Release, it neither ends a held term nor cancels an Acquire that waits for its answer.
func (m *Machine) ReleaseUncertain(n uint64) {
	m.ledger.retry()
	m.enqueue(call{ticket: ticket{n, OpReleaseUncertain}})
}

// HandOver begins a HandOver. It ends the sender's term before the request is sent, because the
// receiver may hold the lease as soon as the authority has carried it out.
func (m *Machine) HandOver(n uint64, to lease.ID) {
	waiting := call{ticket: ticket{n, OpHandOver}, to: to}
	from := cmp.Or(m.ledger.newest(held), m.ledger.newest(given))
	switch {
	case m.closed:
		m.answer(waiting.ticket, lease.ErrClosed)
	case from == nil:
		m.answer(waiting.ticket, lease.ErrNotHeld)
	case to.IsZero() || to == from.id:
		m.answer(waiting.ticket, &lease.FieldError{Field: "to", Value: to.String(), Bound: "must be the ID of another session", Code: lease.ErrProposed})
	default:
		if from.phase == held {
			m.supersede()
			m.end(endsByHandOver, 0, nil)
		}
		m.enqueue(waiting)
	}
}

// Await begins a Wait, during which the Session keeps reading the record. Release and Close answer it,
// and so does a HandOver that ends the term.
func (m *Machine) Await(n uint64) {
	waiting := call{ticket: ticket{n, OpWait}}
	if m.closed {
		m.answer(waiting.ticket, nil)
	} else {
		m.enqueue(waiting)
	}
}

// Cancel answers a call whose caller no longer waits. The request of an Acquire is undone, and that of
// any other call continues.
func (m *Machine) Cancel(n uint64, err error) {
	q := &m.commands
	if q.serving.number == n && n != 0 {
		if q.serving.op == OpAcquire {
			m.abandon(err)
		} else {
			m.answer(q.serving, err)
			q.serving.number = 0
		}
	}
	for i, waiting := range q.waiting {
		if waiting.number == n {
			m.answer(waiting.ticket, waiting.withLoss(err))
			if waiting.op == OpAcquire || waiting.op == OpWait {
				q.remove(i)
			} else {
				q.waiting[i].number = 0
			}
			break
		}
	}
}

// Disclose returns the ID under which the lease is held, or that the next Acquire proposes, and the
// zero ID for a closed machine. It marks the ID as disclosed: another holder that learns it can hand
// the lease over to it.
func (m *Machine) Disclose() lease.ID {
	if m.closed {
		return lease.ID{}
	}
	c := m.proposal()
	c.disclosed = true
	return c.id
}

// --- Work

// WorkBegins counts one more context of WhileHeld for the held term, and returns its ID. If the lease
// is not held, or the stop window has begun, it returns an error and counts nothing.
func (m *Machine) WorkBegins() (lease.ID, error) {
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

// WorkEnds records that the work under a context has stopped. If it was the last of its term, a
// deferred release of the ID is sent.
func (m *Machine) WorkEnds(id lease.ID) {
	if c := m.ledger.find(id); c != nil {
		c.contexts--
		if c.contexts == 0 && c.phase == deferred {
			m.markPending(c)
		}
	}
}

// HoldUntil ends the term with the token tok, but releases its ID only at the time due. If there is
// no such term, or due has passed, HoldUntil changes nothing and returns false.
func (m *Machine) HoldUntil(now time.Time, tok lease.Token, due time.Time) (holds bool) {
	if b := m.term.belief; b == nil || b.Token != tok || !now.Before(due) {
		return false
	}
	m.ledger.newest(held).due = due
	m.end(endsByHolding, 0, nil)
	return true
}

// Stall ends the term with the token tok, because its work makes no progress. The lease stays
// locked until the work has stopped, or until it has ended by itself.
func (m *Machine) Stall(tok lease.Token, why error) {
	if b := m.term.belief; b != nil && b.Token == tok {
		m.lose(lease.ErrNoProgress, why)
	}
}

// --- Time

// Handle passes an input to the machine, handles everything that is due before and after it, and sends
// the next requests. So a late answer cannot extend a belief that has ended. If input is nil, only time
// has passed.
func (m *Machine) Handle(now time.Time, input func(m *Machine, now time.Time)) {
	if input != nil {
		m.tick(now)
		input(m, now)
	}
	m.tick(now)
	m.sendNext(now)
}

// tick handles everything that is due, and drops a belief that has ended.
func (m *Machine) tick(now time.Time) {
	m.tickTerm(now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.isDue(now) {
			m.markPending(c)
		}
	}
}

// Sleep returns the time after which Handle must be called at the latest, or lease.Infinite if never.
func (m *Machine) Sleep(now time.Time) time.Duration {
	wait := m.sleepTerm(now)
	for i := range m.ledger {
		if c := &m.ledger[i]; c.waits() {
			wait = min(wait, c.due.Sub(now))
		}
	}
	return max(wait, 0)
}

// Lend gives the machine an empty struct to which the inputs up to the next Take add their effects. Without
// it, the machine makes a new one.
func (m *Machine) Lend(e *Effects) { m.out = e }

// Take returns the effects of all inputs since its last call, and removes them from the machine.
func (m *Machine) Take() *Effects {
	out := m.effects()
	m.out = nil
	return out
}

// effects returns the struct to which inputs add their effects, until Take empties it.
func (m *Machine) effects() *Effects {
	if m.out == nil {
		m.out = new(Effects)
	}
	return m.out
}

// CanAcquire reports whether an Acquire of this Session can succeed although rec is locked: by a take-
// over, or because it is locked under an ID of this Session that is neither deferred nor held until MinHold.
func (m *Machine) CanAcquire(rec lease.Record) bool {
	if c := m.lockingClaim(rec); c != nil {
		return c.phase != deferred && c.phase != heldUntil
	}
	return m.o.TakeOver && rec.Owner == m.o.Owner && rec.State == lease.Leased
}

// lockingClaim returns the claim under whose ID the lease is locked, or nil if it is none of this
// machine. If the authority does not disclose the ID, lockingClaim assumes the newest pending,
// unsettled, deferred or heldUntil one, in this order.
func (m *Machine) lockingClaim(rec lease.Record) *claim {
	if !rec.ID.IsZero() {
		return m.ledger.find(rec.ID)
	}
	return cmp.Or(m.ledger.newest(pending), m.ledger.newest(unsettled), m.ledger.newest(deferred), m.ledger.newest(heldUntil))
}

// --- The parts of decisions

// proposal returns the claim that is held or proposed, and otherwise proposes a new ID.
func (m *Machine) proposal() *claim {
	for _, p := range []phase{held, proposed} {
		if c := m.ledger.newest(p); c != nil {
			return c
		}
	}
	return m.ledger.propose(m.random.ID())
}

// markPending makes an ID pending. All pending IDs are released, one after the other.
func (m *Machine) markPending(c *claim) {
	c.phase, c.again, c.unsent = pending, true, true
}

// supersede ends every Acquire and every Wait.
func (m *Machine) supersede() {
	m.abandon(lease.ErrReleased)
	m.answerAll(OpAcquire, lease.ErrReleased)
	m.answerAll(OpWait, nil)
}

func (m *Machine) answerAll(o Op, err error) {
	for waiting, ok := m.commands.pop(o); ok; waiting, ok = m.commands.pop(o) {
		m.answer(waiting.ticket, err)
	}
}

// abandon ends the Acquire in service. Its ID is released only after its request was answered, because
// an earlier release could reach the authority before the request, and would release nothing.
func (m *Machine) abandon(err error) {
	asker := m.commands.serving
	if asker.op != OpAcquire {
		return
	}
	m.markPending(m.ledger.find(m.commands.inFlight.Proposed))
	m.commands.serving = ticket{}
	m.answer(asker, err)
}

// enqueue puts a call at the end of the queue.
func (m *Machine) enqueue(waiting call) { m.commands.waiting = append(m.commands.waiting, waiting) }

// answer ends a call. The answer to an Acquire that succeeds has the token of the held term.
func (m *Machine) answer(asker ticket, err error) {
	if asker.number == 0 {
		return
	}
	o := Outcome{Call: asker.number, Op: asker.op, Err: err}
	if b := m.term.belief; b != nil && asker.op == OpAcquire && err == nil {
		o.Token = b.Token
	}
	m.effects().Answers = append(m.effects().Answers, o)
}

// report adds an event to the effects.
func (m *Machine) report(event any) { m.effects().Report = append(m.effects().Report, event) }

// pop removes and returns the first call with the operation o. A refused hand-over stays in the queue
// until the lease is released.
func (q *commands) pop(o Op) (call, bool) {
	for i, waiting := range q.waiting {
		if waiting.op == o && waiting.refused == nil {
			q.remove(i)
			return waiting, true
		}
	}
	return call{}, false
}

// last returns the number of the newest call that waits for releases, or 0 if none does.
func (q *commands) last() (number uint64) {
	for _, waiting := range q.waiting {
		if waiting.isCleanup() {
			number = max(number, waiting.number)
		}
	}
	return number
}

// hasCleanup reports whether a call waits for releases.
func (q *commands) hasCleanup() bool { return slices.ContainsFunc(q.waiting, call.isCleanup) }

// tooManyStuck reports whether the machine must send no request because too many requests are stuck.
func (q *commands) tooManyStuck() bool { return q.stuck >= mostStuck }

// remove removes the call at index i of the queue. An empty queue uses no memory.
func (q *commands) remove(i int) {
	if q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...); len(q.waiting) == 0 {
		q.waiting = nil
	}
}
