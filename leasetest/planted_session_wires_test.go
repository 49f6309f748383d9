package leasetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// The types of this file give a session a bug by what they do between it and its authority.

// takesFor shows the given owner instead of owners that are the same to it.
func takesFor(over lease.Authority, owner string, same func(one, other string) bool) lease.Authority {
	return leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
		if *err != nil && same(res.Record.Owner, owner) {
			res.Record.Owner = owner
		}
	})
}

// signalRenews sends a renewal at each signal, whatever else is in flight.
type signalRenews struct {
	lease.Authority
	mu sync.Mutex
	id lease.ID // of the last acquire
}

func (a *signalRenews) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionAcquire {
		a.mu.Lock()
		a.id = req.Proposed
		a.mu.Unlock()
	}
	return a.Authority.Do(ctx, name, req)
}

func (a *signalRenews) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	signals, err := a.Authority.(lease.Watcher).Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for range signals {
			a.mu.Lock()
			id := a.id
			a.mu.Unlock()
			go func() { _, _ = a.Do(ctx, name, renew(id)) }()
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}

// releasesOnce sends one release for each ID.
type releasesOnce struct {
	lease.Authority
	mu    sync.Mutex
	tried map[lease.ID]bool
}

func (a *releasesOnce) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease {
		a.mu.Lock()
		again := a.tried[req.ID]
		a.tried[req.ID] = true
		a.mu.Unlock()
		if again {
			return lease.Result{Now: time.Now()}, nil
		}
	}
	return a.Authority.Do(ctx, name, req)
}

// releasesLater sends a release when some time has passed since a renewal found a broken lease.
type releasesLater struct {
	lease.Authority
	after time.Duration
}

func (a releasesLater) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionRenew && lease.CodeOf(err) == lease.ErrBroken {
		time.AfterFunc(a.after, func() { _, _ = a.Authority.Do(context.WithoutCancel(ctx), name, release(req.ID)) })
	}
	return res, err
}

// releasesGranted sends a release only for an ID whose acquire was answered with a grant.
type releasesGranted struct {
	lease.Authority
	mu      sync.Mutex
	granted map[lease.ID]bool
}

func (a *releasesGranted) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	keeps := req.Action == lease.ActionRelease && !a.granted[req.ID]
	a.mu.Unlock()
	if keeps {
		return lease.Result{Now: time.Now()}, nil
	}
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionAcquire && err == nil {
		a.mu.Lock()
		a.granted[req.Proposed] = true
		a.mu.Unlock()
	}
	return res, err
}

// watchesOnce refuses every watch but the first.
type watchesOnce struct {
	lease.Authority
	watches atomic.Int32
}

func (a *watchesOnce) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if a.watches.Add(1) > 1 {
		return nil, errors.New("it has watched before")
	}
	return a.Authority.(lease.Watcher).Watch(ctx, name)
}

// The timers of a lateClock run a quarter of a second late.
type lateClock struct{ lease.Clock }

func (c lateClock) After(d time.Duration) <-chan time.Time { return c.Clock.After(d + time.Second/4) }
