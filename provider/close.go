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

// Drop forgets the lease of a kind, a name and an owner, and gives it up: by its Close if it
// is a [Closer], otherwise by its Release. Its error is returned, and the lease is
// forgotten all the same: the next call of Lease makes another. If there is no such lease,
// or it is only being made, Drop does nothing.
func (r *Registry) Drop(ctx context.Context, kind, name, owner string) error {
	k := key{kind, name, owner}
	r.mu.Lock()
	e := r.leases[k]
	if e == nil || !e.ready() {
		r.mu.Unlock()
		return nil
	}
	delete(r.leases, k)
	r.mu.Unlock()
	return k.giveUp(ctx, e.lease)
}

// Close forgets all leases and gives them up as Drop does, all at the same time. It returns
// when every one of them has answered, with their errors; how long that takes ctx decides.
// From the call on Lease returns [lease.ErrClosed], at once to those that wait for the call of
// a provider by another: only the one that called it must wait for it to return, and gives up
// what it made. Close does not wait for that. A second call does nothing.
//
// A lease is closed on a goroutine of its own, where it cannot be seen that a handler waits: in
// a handler of one of the leases give Close a ctx that ends.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	held := make(map[key]lease.Lease)
	for k, e := range r.leases {
		if e.ready() {
			held[k] = e.lease
		} else {
			e.tell(nil, lease.ErrClosed)
		}
	}
	r.leases = nil
	r.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for k, l := range held {
		wg.Go(func() {
			if err := k.giveUp(ctx, l); err != nil {
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

// ready reports whether those who wait have been told.
func (e *entry) ready() bool {
	select {
	case <-e.made:
		return true
	default:
		return false
	}
}

func (k key) giveUp(ctx context.Context, l lease.Lease) error {
	give := l.Release
	if c, ok := l.(Closer); ok {
		give = c.Close
	}
	if err := give(ctx); err != nil {
		return fmt.Errorf("provider: giving up %s %q of %q: %w", k.kind, k.name, k.owner, err)
	}
	return nil
}
