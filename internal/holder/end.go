package holder

import (
	"time"

	"github.com/fencedlease/lease"
)

// An ending is a way in which a term ends. The table endings says what each does. The order is
// the same for all:
//
//  1. The belief ends, so that CheckAlive is false.
//  2. The contexts of WhileHeld end.
//  3. The watch of the record stops, and requests are sent.
//  4. The handlers and the hooks are called, Ended last.
//  5. The calls that wait are answered.
type ending uint8

const (
	endsByRelease  ending = iota // Release or Close was called
	endsByHandOver               // HandOver was called
	endsByHolding                // the function of Run has returned, and the lease stays locked for MinHold
	endsRefused                  // an answer shows that the ID is not in force
	endsUnknown                  // the lease can still be locked under the ID
	endsDeferred                 // the same, and work under a context of WhileHeld is still running
)

// The cause of a loss is a *lease.LostError, and that of every other ending is lease.ErrReleased. There
// is no third, so Run and the hook Ended tell every ending right.
var endings = [...]struct {
	phase phase // of the ID
	loss  bool  // whether it is reported to OnLost, the log, and the next Release
}{
	endsByRelease:  {pending, false},
	endsByHandOver: {given, false},
	endsByHolding:  {heldUntil, false},
	endsRefused:    {cleared, true},
	endsUnknown:    {pending, true},
	endsDeferred:   {deferred, true},
}

// end ends the term. A loss has a reason, and the error err of the last renewal or nil.
func (m *Machine) end(how ending, reason lease.Code, err error) {
	c, cause := m.ledger.newest(held), error(lease.ErrReleased)
	if endings[how].loss {
		m.lost = m.lossError(reason, err)
		m.report(m.lost)
		cause = m.lost
	}
	m.term.belief = nil
	m.effects().Ended = cause
	switch c.phase = endings[how].phase; c.phase {
	case pending:
		m.markPending(c)
	case cleared:
		m.ledger.clear(c)
	}
}

// lose ends the term with a loss. The lease can still be locked under the ID if no answer has
// extended the belief before its end, if the work made no progress, or if an earlier Acquire with the
// ID is in doubt. The machine then releases the ID. While work under a context of WhileHeld is running,
// it defers that release, at most until a finite lease has certainly expired.
func (m *Machine) lose(reason lease.Code, err error) {
	how, c := endsUnknown, m.ledger.newest(held)
	switch {
	case reason != lease.ErrExpired && reason != lease.ErrNoProgress && !c.inDoubt:
		how = endsRefused
	case c.contexts > 0:
		how = endsDeferred
		if longest := m.o.MaxElsewhere(m.o.Duration); longest != lease.Infinite {
			c.due = m.lastSent().Add(m.o.RequestTimeout).Add(longest)
		}
	}
	m.end(how, reason, err)
}

// lastSent returns when the last renewal of the term was sent at the latest.
func (m *Machine) lastSent() time.Time {
	sent := m.term.renewal.sent
	if p := m.Patience(); m.term.renewal.inFlight && p.After(sent) {
		return p
	}
	return sent
}

func (m *Machine) lossError(reason lease.Code, err error) *lease.LostError {
	return &lease.LostError{Name: m.name, Token: m.term.belief.Token, Reason: reason, Err: err}
}

// stopReason returns the error that tells the work why it must stop in the stop window. It wraps
// [lease.ErrBroken] if the lease is breaking, and the error of the last answered renewal if that has
// failed. If neither is the case, for example because the process was suspended, it wraps nothing.
func (m *Machine) stopReason() *lease.LostError {
	err := m.term.failed
	if m.term.notice != nil {
		err = Join(lease.ErrBroken, err)
	}
	return m.lossError(lease.ErrStopWindow, err)
}
