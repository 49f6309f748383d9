package blobtest

import (
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// limits are those of the service, according to its documentation:
//
//	A non-infinite lease can be between 15 and 60 seconds.
//	[A break period is] between 0 and 60 seconds.
var limits = lease.Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

const century = 100 * 365 * 24 * time.Hour // longer than any test waits

// newAuthority returns an in-memory authority that enforces the limits of the Blob service. It reads the
// clock once for each request, and therefore decides, commits and answers it with the same time.
func newAuthority(clock *leasefault.Clock) lease.Authority {
	// Like the service, the authority never loses a lease ID during a test, because it keeps records
	// for a century.
	return memory.New(&memory.Options{Clock: clock, Limits: limits, Retention: century}).Authority()
}
