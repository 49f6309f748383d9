package memory

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// An authority is the Store as a [lease.Authority] of its own. It decides as [lease.NewAuthority]
// does, by [lease.Decide], but under the lock of the record: a request is one look-up, one lock and
// one reading of the clock, and there is no version to compare.
type authority Store

// Authority returns the authority over the Store, with which a program can look at a lease, break
// it, and write under it. It grants what [lease.NewAuthority] of the Store grants, and takes less
// time. It is a [lease.Watcher] and a [lease.Lister].
func (s *Store) Authority() lease.Authority {
	s.check()
	return (*authority)(s)
}

// Do carries out one request. Since nothing can fail between the decision and the answer, the
// outcome is never unknown, except under a context that is done.
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
	now, elapsed := s.clock.now()
	next, write, err := lease.Decide(e.record, *req, s.limits, now)
	if _, refused := err.(lease.Code); err != nil && !refused {
		return err // a bad argument: the answer shows nothing
	}
	if write {
		s.put(sh, hash, name, e, next, now, elapsed)
	}
	res.Record, res.Now, res.MinRemaining = next, now, next.Remaining(now)
	return err
}

// refuseFirst returns the error of a bad name or argument, which is certain, and otherwise err.
func (a *authority) refuseFirst(name string, req *lease.Request, err error) error {
	if bad := lease.CheckName(name); bad != nil {
		return bad
	}
	if bad := a.limits.Check(*req); bad != nil {
		return bad
	}
	return err
}

// Watch is that of the Store.
func (a *authority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return (*Store)(a).Watch(ctx, name)
}

// List is that of the Store, with each record as it may stand within the limits.
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
