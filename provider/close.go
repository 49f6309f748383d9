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

// Drop removes the lease with the given kind, name and owner from the Registry. If the removed
// lease is a [Closer], Drop calls its Close method. If the removed lease is not a Closer, Drop
// calls its Release method. If Close or Release fails, Drop returns an error that wraps the error
// of Close or Release. Even after an error, the lease stays removed, and the next call of
// [Registry.Lease] makes a new lease. If the Registry does not contain the lease, or if a Provider
// is still making the lease, Drop does nothing and returns nil.
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

// Close removes all leases from the Registry. For each removed lease that is a [Closer],
// Registry.Close calls the method Close. For every other lease, it calls the method Release.
// Registry.Close calls the methods Close and Release of all leases concurrently, and waits until
// all of them have returned. If some leases return errors, Registry.Close returns an error that
// wraps all errors of the leases. Registry.Close passes ctx to the methods of the leases, so that
// they can return early when ctx is done.
//
// Once Registry.Close is called, [Registry.Lease] returns an error that wraps [lease.ErrClosed]. If
// a call of Registry.Lease is waiting for a Provider when Registry.Close is called, the waiting
// call also returns an error that wraps lease.ErrClosed. Registry.Close does not wait for a
// Provider that is running. If a Provider returns a lease after Registry.Close was called, the
// Registry closes or releases the lease. A second call of Registry.Close does nothing and returns
// nil.
//
// If a handler of one of the leases calls Registry.Close, the handler must pass a ctx that has a
// deadline or will be canceled. With a ctx that never ends, a deadlock is possible: the handler
// waits for Registry.Close, Registry.Close waits for the lease, and the lease waits for the
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

// closeLease calls l.Close if the lease l is a Closer, and calls l.Release if l is not a Closer.
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
