package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fencedlease/lease"
)

// Drop removes the lease with the given kind, name and owner from the Registry. If the lease is a
// [Closer], Drop then calls its Close method. Otherwise Drop calls its Release method. Drop returns
// the error of that call. Even after an error, the lease stays removed, and the next call of Lease
// makes a new lease. If the Registry has no such lease, or if a Provider is still making it, Drop
// does nothing and returns nil.
func (r *Registry) Drop(ctx context.Context, kind, name, owner string) error {
	k := key{kind, name, owner}
	r.mu.Lock()
	e := r.leases[k]
	if e == nil || !e.isFinished() {
		r.mu.Unlock()
		return nil
	}
	delete(r.leases, k)
	r.mu.Unlock()
	return k.closeLease(ctx, e.lease)
}

// Close removes all leases from the Registry, and closes or releases them concurrently, as
// [Registry.Drop] does for one lease. Close waits until the Close or Release method of every lease
// has returned. The error of Close joins the errors of those methods. The Close and Release methods
// get ctx, so that they can return early when ctx is done.
//
// Once Close is called, Lease returns [lease.ErrClosed], even to callers that are already waiting.
// Close does not wait for a Provider that is running. If a Provider returns after Close, Lease
// drops the new lease and returns [lease.ErrClosed]. A second call of Close does nothing and
// returns nil.
//
// If a handler of one of the leases calls Close, it must pass a ctx with a deadline or a ctx that
// is canceled later. If ctx is never done, a deadlock is possible, because the lease may wait for
// its handler while Close waits for the lease.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	held := make(map[key]lease.Lease)
	for k, e := range r.leases {
		if e.isFinished() {
			held[k] = e.lease
		} else {
			e.finish(nil, lease.ErrClosed)
		}
	}
	r.leases = nil
	r.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for k, l := range held {
		wg.Go(func() {
			if err := k.closeLease(ctx, l); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// isFinished reports whether the lease or the error of the entry is set.
func (e *entry) isFinished() bool {
	select {
	case <-e.made:
		return true
	default:
		return false
	}
}

// closeLease closes the lease l if it is a Closer, and releases it otherwise.
func (k key) closeLease(ctx context.Context, l lease.Lease) error {
	end := l.Release
	if c, ok := l.(Closer); ok {
		end = c.Close
	}
	if err := end(ctx); err != nil {
		return fmt.Errorf("provider: cannot drop %s %q of %q: %w", k.kind, k.name, k.owner, err)
	}
	return nil
}
