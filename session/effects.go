package session

import (
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An effects value lists what the machine has decided to do. The Session does it without holding a
// lock.
type effects struct {
	stop    *lease.LostError // if not nil, the stop window begins, and the contexts of WhileHeld end with this cause
	ended   error            // if not nil, everything that belongs to the incarnation ends with this cause
	began   bool             // an incarnation began; its record is watched if Options.Watch is set
	send    []request        // requests to send, each on a goroutine of its own
	report  []any            // events for the handlers, the Trace and the Logger; report.go lists their types
	answers []outcome        // outcomes of calls that wait
}

// spare has effects that were done.
var spare = sync.Pool{New: func() any { return new(effects) }}

// done keeps the struct, which has no more users, for another input.
func (e *effects) done() {
	clear(e.send)
	clear(e.report)
	clear(e.answers)
	*e = effects{send: e.send[:0], report: e.report[:0], answers: e.answers[:0]}
	spare.Put(e)
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
	return joinErrors(err, c.lost)
}

// A ticket identifies a call, so that the machine can answer the call.
type ticket struct {
	number uint64
	op     op
}

// isCleanup reports whether the call waits until the machine has released all pending IDs.
func (c call) isCleanup() bool { return c.op == opRelease || c.op == opSettle || c.refused != nil }

type op uint8

const (
	opAcquire op = iota + 1
	opRelease    // Release and Close
	opHandOver
	opSettle // like opRelease, but only for Acquires with an unknown outcome
	opWait   // waits until the lease is released or the Session is closed
)

// An outcome is the answer to a call. If an Acquire was not granted, the token is empty.
type outcome struct {
	call  uint64
	op    op
	token lease.Token
	err   error
}

// A request is sent to the authority and has one answer.
type request struct {
	lease.Request
	aim  aim
	term uint64    // for a renewal: the number of its incarnation
	call uint64    // the highest number of a call that the outcome of the request answers; 0 if it answers no call
	sent time.Time // the time of sending, at which a belief begins to count
}

// An aim is the purpose of a request. Every request except a renewal is a command.
type aim uint8

const (
	aimRenew    aim = iota + 1 // keep the lease
	aimAcquire                 // take the lease, for the Acquire in service
	aimTakeOver                // change the ID of an earlier holder to ours, and then acquire
	aimRelease                 // release a pending ID
	aimProbe                   // acquire a pending ID that is in doubt, to release it
	aimHandOver                // change our ID to the receiver's
)
