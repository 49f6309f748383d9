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

// Drop removes the lease with the given kind, name and owner from the Registry. It closes the lease if the
// lease is a [Closer], and otherwise releases it. The error wraps that of Close or Release. Even after an
// error, the lease is removed, and the next call of [Registry.Lease] makes a new one. If the Registry does
// not contain the lease, or a Provider is still making it, Drop does nothing and returns nil.
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

// Close removes all leases from the Registry, and closes or releases all of them at the same time, like
// [Registry.Drop]. It passes ctx to each of them, waits until all calls have returned, and joins their
// errors. A second call of Close does nothing and returns nil.
//
// After Close, [Registry.Lease] returns an error that wraps [lease.ErrClosed], even in calls that are already
// waiting for a Provider. Close does not wait for a Provider that is still running. If this Provider returns
// a lease later, the Registry closes or releases the lease.
//
// A handler of one of the leases must not call Close with a ctx that never ends. Otherwise there can be a
// deadlock, in which the handler waits for Close, Close waits for the lease, and the lease waits for the
// handler.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	held := make(map[key]lease.Lease)
	for k, e := range r.leases {
		if e.isFinished() {
			held[k] = e.lease
		} else {
			e.finish(nil, errClosed)
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

// isFinished reports whether the entry already contains a lease or an error.
func (e *entry) isFinished() bool {
	select {
	case <-e.made:
		return true
	default:
		return false
	}
}

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
