package observe

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// An Authority grants leases of a [Store] with fewer exchanges than [lease.NewAuthority] would. A
// request that will write begins with what was last seen of the lease, and so with the swap. A
// renewal is one exchange, and an acquire without contention at most two. A refusal, and a result
// that writes nothing, are always decided on what was read within the call. An Authority is safe
// for use by several goroutines at once.
type Authority struct{ store *Store }

// Authority returns an Authority over s.
func (s *Store) Authority() *Authority { return &Authority{s} }

// Do implements [lease.Authority].
func (a *Authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	c := &call{Store: a.store, opening: req.Action == lease.ActionAcquire}
	c.last, _ = a.store.remembered(name)
	res, err := lease.NewAuthority(c).Do(ctx, name, req)
	if c.began && !c.asked { // no request was sent: that was not an answer
		res, err = lease.NewAuthority(c).Do(ctx, name, req)
	}
	return res, err
}

// Watch implements [lease.Watcher].
func (a *Authority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return a.store.Watch(ctx, name)
}

// List implements [lease.Lister].
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
