package engine

import (
	"cmp"
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// A StoreAuthority is an authority over a [Store] that sends fewer requests than the authority of
// [lease.NewAuthority]. To change the record of a lease, a StoreAuthority usually needs no Load, because it
// first tries a Swap that is based on the entry that the Store remembers. So a renewal needs one request to
// the server, and an acquire without contention at most two. If no record has to change, for example because
// the request is refused, Do reads the entry from the server before it answers. A StoreAuthority is safe for
// concurrent use.
type StoreAuthority struct{ store *Store }

// Authority returns a StoreAuthority over s.
func (s *Store) Authority() *StoreAuthority { return &StoreAuthority{s} }

// Do implements [lease.Authority].
func (a *StoreAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if err := cmp.Or(lease.CheckName(name), a.store.limits.Check(req)); err != nil {
		return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	c := &call{Store: a.store, opening: req.Action == lease.ActionAcquire, last: a.store.remembered(name)}
	ctx = urgentIf(ctx, req.Action)
	res, err := lease.NewAuthority(c).Do(ctx, name, req)
	if c.began && !c.asked { // the decision used only the remembered entry, so decide again with the entry from the server
		res, err = lease.NewAuthority(c).Do(ctx, name, req)
	}
	return res, err
}

// Watch implements [lease.Watcher].
func (a *StoreAuthority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return a.store.Watch(ctx, name)
}

// List implements [lease.Lister].
func (a *StoreAuthority) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return a.store.List(ctx, prefix)
}

// The type call implements [lease.Store] for a single request of a StoreAuthority. Its first Load returns the
// Snapshot that the Store remembers, if any, and sends no request to the server.
type call struct {
	*Store
	opening bool // whether the request is an acquire

	last  lease.Snapshot // the remembered Snapshot; the first Load returns it
	began bool           // whether a Load has returned the remembered Snapshot
	asked bool           // whether a request was sent to the server
}

// Limits returns the zero Limits, because no further check is needed. [StoreAuthority.Do] has already checked
// the request. The Store has already shortened the leases that are longer than its limits, except foreign
// leases, which the limits do not concern.
func (c *call) Limits() lease.Limits { return lease.Limits{} }

func (c *call) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if last := c.last; last.Version != "" {
		c.began, c.last = true, lease.Snapshot{}
		return last, nil
	}
	c.asked = true
	if c.opening {
		return c.load(ctx, name, c.backend.Open)
	}
	return c.load(ctx, name, c.backend.Load)
}

func (c *call) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	c.asked = true
	return c.Store.Swap(ctx, name, old, next)
}
