package holder

import (
	"time"

	"github.com/fencedlease/lease"
)

// Effects list what the machine has decided to do. The Session does it without holding a
// lock.
type Effects struct {
	Stop    *lease.LostError // if not nil, the stop window begins, and the contexts of WhileHeld end with this cause
	Ended   error            // if not nil, everything that belongs to the term ends with this cause
	Began   bool             // a term began; its record is watched if Options.Watch is set
	Send    []Request        // requests to send, each on a goroutine of its own
	Report  []any            // events for the handlers, the Trace and the Logger; events.go lists their types
	Answers []Outcome        // outcomes of calls that wait
}

// Clear empties the struct for another input. No one may use its lists any more.
func (e *Effects) Clear() {
	clear(e.Send)
	clear(e.Report)
	clear(e.Answers)
	*e = Effects{Send: e.Send[:0], Report: e.Report[:0], Answers: e.Answers[:0]}
}

// A call is a method call that waits for its outcome. The Session gives each call a number. If the
// caller no longer waits but the request continues, the number of the call is 0.
type call struct {
	ticket
	to      lease.ID         // for a hand-over: the ID of the receiver
	refused error            // for a refused hand-over: the error to return once the lease is released
	lost    *lease.LostError // for a Release: the loss that it reports; nil if there was none
}

// withLoss returns the outcome err of the call, joined with the loss that the call reports.
func (c call) withLoss(err error) error {
	if c.lost == nil {
		return err
	}
	return Join(err, c.lost)
}

// A ticket identifies a call, so that the machine can answer the call.
type ticket struct {
	number uint64
	op     Op
}

// isCleanup reports whether the call waits until the machine has released all pending IDs.
func (c call) isCleanup() bool {
	return c.op == OpRelease || c.op == OpReleaseUncertain || c.refused != nil
}

// An Op is what the caller of a Session asks for.
type Op uint8

const (
	OpAcquire Op = iota + 1
	OpRelease    // Release and Close
	OpHandOver
	OpReleaseUncertain // like OpRelease, but only for Acquires with an unknown outcome
	OpWait             // waits until the lease is released or the Session is closed
)

// An Outcome is the answer to a call. If an Acquire was not granted, the token is empty.
type Outcome struct {
	Call  uint64
	Op    Op
	Token lease.Token
	Err   error
}

// A Request is sent to the authority and has one answer.
type Request struct {
	lease.Request
	Aim  Aim
	Term uint64        // for a renewal: the number of its term
	Call uint64        // the highest number of a call that the outcome of the request answers; 0 if it answers no call
	Sent time.Time     // the time of sending, at which a belief begins to count
	Wait time.Duration // how long a renewal waited before it was sent
}

// An Aim is the purpose of a request. Every request except a renewal is a command.
type Aim uint8

const (
	AimRenew    Aim = iota + 1 // keep the lease
	AimAcquire                 // take the lease, for the Acquire in service
	AimTakeOver                // change the ID of an earlier holder to ours, and then acquire
	AimRelease                 // release a pending ID
	AimProbe                   // acquire a pending ID that is in doubt, to release it
	AimHandOver                // change our ID to the receiver's
)
