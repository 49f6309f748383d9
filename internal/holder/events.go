package holder

import (
	"time"

	"github.com/fencedlease/lease"
)

// A Machine reports events of these types, and a *lease.LostError for each loss. Package session documents
// the fields that it passes on.

// An Acquired event comes after an attempt to acquire the lease.
type Acquired struct {
	Token     lease.Token
	Err       error
	Took      time.Duration
	Abandoned bool
}

// A Renewed event comes after each renewal.
type Renewed struct {
	Token      lease.Token
	Err        error
	Took, Left time.Duration
}

// A Released event comes after each release and each hand-over.
type Released struct {
	ID, To lease.ID
	Err    error
}

// A Breaking event comes when the holder learns of a break, or that it ends earlier.
type Breaking struct {
	Token lease.Token
	Until time.Time
}

// A Failure reports a failed request, and how many have failed in a row.
type Failure struct {
	What  string
	Err   error
	Count int
}

// A Recovery reports the first request that was answered after failed requests, and their number.
type Recovery struct{ Count int }
