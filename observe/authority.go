package observe

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// An Authority is the one that [lease.NewAuthority] makes of a [Store], with fewer
// exchanges: it begins a request with what was last seen of the lease, so that one that writes
// begins with the swap. A renewal is one exchange, and an uncontended acquire at most two. A
// refusal, and a result that writes nothing, is still decided only on what was seen within the
// call.
type Authority struct{ store *Store }

// Authority returns an Authority over s.
func (s *Store) Authority() *Authority { return &Authority{s} }

// Do carries out one request.
func (a *Authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	c := &call{Store: a.store, opening: req.Action == lease.ActionAcquire}
	c.last, _ = a.store.remembered(name)
	res, err := lease.NewAuthority(c).Do(ctx, name, req)
	if c.began && !c.asked { // nobody was asked: that was no answer
		res, err = lease.NewAuthority(c).Do(ctx, name, req)
	}
	return res, err
}

// Watch is that of the engine.
func (a *Authority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return a.store.Watch(ctx, name)
}

// List is that of the Store.
func (a *Authority) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return a.store.List(ctx, prefix)
}

// A call is the Store for one request.
type call struct {
	*Store
	opening bool // the request leases the name

	last  lease.Snapshot // what was seen before the call; it answers the first Load
	began bool           // it did
	asked bool           // the engine was asked
}

func (c *call) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if last := c.last; last.Version != "" {
		c.began, c.last = true, lease.Snapshot{}
		return last, nil
	}
	c.asked = true
	if c.opening {
		return c.load(ctx, name, c.engine.Open)
	}
	return c.Store.Load(ctx, name)
}

func (c *call) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	c.asked = true
	return c.Store.Swap(ctx, name, old, next)
}
