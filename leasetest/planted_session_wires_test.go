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

// mixesAnswers answers a renewal with the late refusal of a renewal of an earlier term, if there is one.
type mixesAnswers struct {
	lease.Authority
	mu      sync.Mutex
	newest  lease.ID // the last proposed ID
	late    error    // the refusal; nil if there is none
	lateRes lease.Result
}

func (a *mixesAnswers) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case req.Action == lease.ActionAcquire:
		a.newest = req.Proposed
	case req.Action == lease.ActionRenew && req.ID != a.newest && lease.CodeOf(err).Refusal():
		a.lateRes, a.late = res, err
	case req.Action == lease.ActionRenew && a.late != nil:
		res, err, a.late = a.lateRes, a.late, nil
	}
	return res, err
}

// lateGrants calls f with what is certain by each renewal that was granted after its context had ended.
type lateGrants struct {
	lease.Authority
	f func(sure time.Duration)
}

func (a lateGrants) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionRenew && err == nil && ctx.Err() != nil {
		a.f(res.MinRemaining)
	}
	return res, err
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
