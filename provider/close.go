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

// Drop removes the lease of a kind, a name and an owner from the Registry. Then it calls the
// lease's Close if the lease is a [Closer], and its Release otherwise, and returns the error of
// that. The lease is removed even if there is an error: the next call of Lease makes another one.
// If there is no such lease, or if it is still being made, Drop does nothing.
func (r *Registry) Drop(ctx context.Context, kind, name, owner string) error {
	k := key{kind, name, owner}
	r.mu.Lock()
	e := r.leases[k]
	if e == nil || !e.finished() {
		r.mu.Unlock()
		return nil
	}
	delete(r.leases, k)
	r.mu.Unlock()
	return k.drop(ctx, e.lease)
}

// Close drops all leases at the same time, each on a goroutine of its own, and returns when all
// have returned. Its error joins their errors. If ctx ends, the leases return early.
//
// Once Close is called, Lease returns [lease.ErrClosed], even to callers that are already waiting.
// If a Provider is running, the call of Lease that runs it returns when the Provider does, and
// drops the lease that was made. Close does not wait for that. A second Close does nothing.
//
// A handler of one of the leases must call Close with a ctx that ends: the lease may wait for the
// handler while Close waits for the lease.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	held := make(map[key]lease.Lease)
	for k, e := range r.leases {
		if e.finished() {
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
			if err := k.drop(ctx, l); err != nil {
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

// finished reports whether the entry has its lease or its error.
func (e *entry) finished() bool {
	select {
	case <-e.made:
		return true
	default:
		return false
	}
}

// drop closes or releases the lease of the key.
func (k key) drop(ctx context.Context, l lease.Lease) error {
	end := l.Release
	if c, ok := l.(Closer); ok {
		end = c.Close
	}
	if err := end(ctx); err != nil {
		return fmt.Errorf("provider: cannot drop %s %q of %q: %w", k.kind, k.name, k.owner, err)
	}
	return nil
}
