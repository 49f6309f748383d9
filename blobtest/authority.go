package blobtest

import (
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// limits contains the limits of the service, according to its documentation:
//
//	A non-infinite lease can be between 15 and 60 seconds.
//	[A break period is] between 0 and 60 seconds.
var limits = lease.Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

const century = 100 * 365 * 24 * time.Hour // longer than any test waits

// newAuthority returns an authority in memory that enforces the limits of the Blob service. It reads the
// clock once for each request, so the decision and the answer have the same time.
func newAuthority(clock *leasefault.Clock) lease.Authority {
	// Like the service, the authority must never lose a lease ID during a test. It therefore keeps records
	// for a century.
	return memory.New(&memory.Options{Clock: clock, Limits: limits, Retention: century}).Authority()
}
