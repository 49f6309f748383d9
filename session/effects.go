package session

import (
	"time"

	"github.com/fencedlease/lease"
)

// Effects are what the shell does after a step, once it holds no lock.
type effects struct {
	stop    error     // not nil: the contexts of WhileHeld end, with this cause
	ended   error     // not nil: so does everything else that belongs to the incarnation
	began   bool      // an incarnation began: watch its record, if the Options say so
	send    []request // each on a goroutine of its own
	report  []any     // to handlers, Trace and Logger: an event, as listed in report.go
	answers []outcome // to the calls that wait
}

// A call is a method of the Session that waits for its outcome. The shell gives it a number; a
// call that is answered already, and whose request goes on, has the number 0.
type call struct {
	ticket
	to      lease.ID // of a hand-over: the receiver's ID
	refused error    // of a hand-over that was refused: the call waits until the lease is released, and returns this
}

// A ticket is what is needed to answer a call.
type ticket struct {
	number uint64
	op     op
}

// cleans reports whether the call ends when pending IDs are released.
func (c call) cleans() bool { return c.op == opRelease || c.op == opSettle || c.refused != nil }

type op uint8

const (
	opAcquire op = iota + 1
	opRelease    // Release and Close
	opHandOver
	opSettle // as Release, but only what an unknown Acquire may have been granted
	opWait   // ends when the lease is released or the Session is closed
)

// An outcome is the answer to a call. Of an Acquire that is not granted the token is empty.
type outcome struct {
	call  uint64
	op    op
	token lease.Token
	err   error
}

// A request is one exchange with the authority.
type request struct {
	lease.Request
	aim  aim
	term uint64    // of a renewal: the number of the incarnation
	call uint64    // the last call that its outcome answers; 0: none
	sent time.Time // every belief is counted from here
}

// An aim is what a request is sent for. All but a renewal are commands.
type aim uint8

const (
	aimRenew    aim = iota + 1 // keep the lease
	aimAcquire                 // take the lease, for the Acquire in service
	aimTakeOver                // change the ID of an earlier holder to ours, and then acquire
	aimRelease                 // release a pending ID
	aimProbe                   // acquire a pending ID that is in doubt, to release it
	aimHandOver                // change our ID to the receiver's
)
