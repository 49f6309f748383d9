package blobtest

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// newAuthority returns an in-memory authority that enforces the limits of the Blob service. The
// authority reads the clock once for each request. The authority therefore decides, commits and
// answers each request with the same time.
func newAuthority(clock *Clock) lease.Authority {
	// The Blob service never forgets a lease ID. Like the service, the authority from newAuthority
	// never forgets a lease ID in a test: it keeps its records for a century.
	return memory.New(&memory.Options{Clock: clock, Limits: lease.AzureLimits, Retention: century}).Authority()
}
