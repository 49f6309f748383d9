package leasetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A requests value is an authority that records the requests of a lease under test. It stays empty
// without CanUseAuthority.
type requests struct {
	lease.Authority
	h    *history
	who  string
	down atomic.Bool // every request fails

	mu      sync.Mutex
	sent    []sent
	flying  map[*sent]context.Context
	most    map[lease.Action]int // the most requests in flight at the same time, not canceled
	crossed bool                 // a release was sent while an acquire was in flight
}

func newRequests(h *history, who string) *requests {
	return &requests{h: h, who: who, flying: map[*sent]context.Context{}, most: map[lease.Action]int{}}
}

type sent struct {
	lease.Request
	at   time.Time
	done bool // the context was already done when the request was sent
	ctx  context.Context
}

func (w *requests) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	w.h.printf("%s -> %s", w.who, requestText(req))
	s := sent{req, time.Now(), ctx.Err() != nil, ctx}
	w.mu.Lock()
	w.sent = append(w.sent, s)
	w.flying[&s] = ctx
	w.most[req.Action] = max(w.most[req.Action], w.inFlight(req.Action))
	w.crossed = w.crossed || req.Action == lease.ActionRelease && w.inFlight(lease.ActionAcquire) > 0
	w.mu.Unlock()
	res, err := w.Authority.Do(ctx, name, req)
	w.mu.Lock()
	delete(w.flying, &s)
	w.mu.Unlock()
	w.h.printf("%s <- %s: %s", w.who, requestText(req), answerText(res, err))
	return res, err
}

// inFlight returns the number of requests of the given action that have no answer and whose
// contexts are not done. The caller must hold mu.
func (w *requests) inFlight(a lease.Action) (n int) {
	for s, ctx := range w.flying {
		if s.Action == a && ctx.Err() == nil {
			n++
		}
	}
	return n
}

// sentOf returns all requests of the given action that were sent so far. The action leasefault.Any
// stands for all actions.
func (w *requests) sentOf(a lease.Action) []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []sent
	for _, s := range w.sent {
		if a == leasefault.Any || s.Action == a {
			found = append(found, s)
		}
	}
	return found
}

// maxInFlight returns the largest number of requests of the given action that were in flight at the
// same time.
func (w *requests) maxInFlight(a lease.Action) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[a]
}

// proposed returns the ID in the last acquire that was sent.
func (w *requests) proposed() lease.ID {
	acquires := w.sentOf(lease.ActionAcquire)
	if len(acquires) == 0 {
		return lease.ID{}
	}
	return acquires[len(acquires)-1].Proposed
}
