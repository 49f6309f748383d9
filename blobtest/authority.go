package blobtest

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// newAuthority returns an in-memory authority that enforces the limits of the Blob service. It reads the
// clock once for each request, and therefore decides, commits and answers it with the same time.
func newAuthority(clock *Clock) lease.Authority {
	// Like the service, the authority never forgets a lease ID in a test: it keeps records for a century.
	return memory.New(&memory.Options{Clock: clock, Limits: lease.AzureLimits, Retention: century}).Authority()
}
