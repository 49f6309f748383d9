package session

import (
	"time"

	"github.com/fencedlease/lease"
)

// A Trace is a set of hooks for the events of a [Session], for metrics and tests. Any of
// them may be nil. They are called on the goroutine that decided, after the decision and
// without any lock held; those of one Session may be called at the same time. A hook that
// takes long delays the call it reports, so it must not wait, and must not make the Session
// send a request: that is what the handlers of OnLost and OnBreaking are for. One that panics
// is not recovered from, and most run on goroutines of the Session: that ends the process.
type Trace struct {
	// Acquire is called after every try to acquire that made a request: how it ended, and how
	// long its last request took. A take-over is one try of several requests.
	Acquire func(AcquireInfo)

	// Renew is called after every renewal.
	Renew func(RenewInfo)

	// Breaking is called when the Session learns that its lease is breaking, and again when
	// the break was shortened, with the time until which it is certain.
	Breaking func(tok lease.Token, until time.Time)

	// Lost is called once for every incarnation that ends by loss.
	Lost func(*lease.LostError)

	// Released is called after every request to release: by Release, Close or HandOver, or
	// to undo an Acquire or a renewal that came too late.
	Released func(ReleaseInfo)
}

// AcquireInfo is what [Trace].Acquire is told.
type AcquireInfo struct {
	Token     lease.Token // if it is held now
	Err       error       // if the outcome is unknown, or an argument was bad
	Took      time.Duration
	Abandoned bool // the caller had gone when the answer came
}

// RenewInfo is what [Trace].Renew is told.
type RenewInfo struct {
	Token  lease.Token
	Err    error
	Took   time.Duration
	Margin time.Duration // how much was left of the belief when the answer came; not positive: too late
}

// ReleaseInfo is what [Trace].Released is told.
type ReleaseInfo struct {
	ID  lease.ID
	To  lease.ID // the receiver's, for a hand-over
	Err error    // if the outcome is unknown, or a hand-over was refused
}
