package blobtest

import (
	"context"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// An instantAuthority carries out each request at one instant of its clock: the request is
// decided, committed and answered at the same time. A memory.Store reads its clock when it
// decides and again when it commits. On a running clock, a break in 5 s would therefore be
// answered with 4 s.
type instantAuthority struct {
	lease.Watcher
	store   lease.Authority
	clock   *Clock
	mu      sync.Mutex // held during a request, which waits for nothing
	instant instant
}

// An instant is the clock of the store. It shows the time of the request that is being carried
// out.
type instant struct {
	*Clock
	now time.Time
}

func (i *instant) Now() time.Time { return i.now }

// newInstantAuthority returns an authority over a store of its own, with the limits of the service.
func newInstantAuthority(clock *Clock) *instantAuthority {
	a := &instantAuthority{clock: clock, instant: instant{clock, clock.Now()}}
	// The service never forgets an ID, so the longest retention is the right one.
	store := memory.New(&memory.Options{Clock: &a.instant, Limits: lease.AzureLimits, Retention: century})
	a.Watcher, a.store = store, lease.NewAuthority(store)
	return a
}

func (a *instantAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.instant.now = a.clock.Now()
	return a.store.Do(ctx, name, req)
}
