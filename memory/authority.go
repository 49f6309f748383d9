package memory

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// authority implements [lease.Authority] for a Store. Do calls [lease.Decide] while it holds the mutex of the
// record's shard, so that a request needs only one lookup, one lock and one reading of the clock.
type authority Store

// Authority returns an authority over the Store, with which a program can inspect or break a lease, and check
// whether a write is allowed. The authority makes the same decisions as an authority from
// [lease.NewAuthority], but is faster. The authority also implements [lease.Watcher] and [lease.Lister].
func (s *Store) Authority() lease.Authority {
	s.check()
	return (*authority)(s)
}

// Do carries out one request, unless ctx is done before the call. Do ignores a ctx that ends later. The
// outcome is always known, because no step can fail after the Store has changed.
func (a *authority) Do(ctx context.Context, name string, req lease.Request) (res lease.Result, err error) {
	if err = a.do(ctx, name, &req, &res); err != nil {
		err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return res, err
}

func (a *authority) do(ctx context.Context, name string, req *lease.Request, res *lease.Result) error {
	s := (*Store)(a)
	if err := ctx.Err(); err != nil {
		return a.refuseFirst(name, req, err)
	}
	hash := s.hash(name)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, err := s.find(sh, hash, name)
	if err != nil {
		return err
	}
	now, elapsed := s.clock.Now()
	next, write, err := lease.Decide(e.record, *req, s.limits, now)
	if _, refused := err.(lease.Code); err != nil && !refused {
		return err // for a bad argument, the Result stays zero
	}
	if write {
		s.put(sh, hash, name, e, next, now, elapsed)
	}
	res.Record, res.Now, res.MinRemaining = next, now, next.Remaining(now)
	return err
}

// refuseFirst returns an error for a bad name or a bad argument, and otherwise err. The error of a bad name
// or argument is better than err, because it also tells the caller that the request was certainly refused.
func (a *authority) refuseFirst(name string, req *lease.Request, err error) error {
	if bad := lease.CheckName(name); bad != nil {
		return bad
	}
	if bad := a.limits.Check(*req); bad != nil {
		return bad
	}
	return err
}

// Watch is like [Store.Watch].
func (a *authority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return (*Store)(a).Watch(ctx, name)
}

// List is like [Store.List], but shortens the remaining time of each lease to the limits of the Store.
func (a *authority) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range (*Store)(a).List(ctx, prefix) {
			e.Record, _, _ = lease.Decide(e.Record, lease.Request{Action: lease.ActionRead}, a.limits, e.Now)
			if !yield(e, err) {
				return
			}
		}
	}
}
