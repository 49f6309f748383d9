package blobtest

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// newAuthority returns an authority over a store of its own, with the limits of the service. It reads
// the clock once for each request, so a request is decided, committed and answered at one time.
func newAuthority(clock *Clock) lease.Authority {
	// The service never forgets an ID, so the longest retention is the right one.
	return memory.New(&memory.Options{Clock: clock, Limits: lease.AzureLimits, Retention: century}).Authority()
}
