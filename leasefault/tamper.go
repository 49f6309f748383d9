package leasefault

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// Tamper returns a store that calls f to change its records, as if an operator had edited them by hand. It
// calls f with the record of every snapshot that Load returns, and of every entry that List returns, but not
// with the records of a Swap. The function f must be safe for concurrent use by multiple goroutines.
func Tamper(s lease.Store, f func(name string, r *lease.Record)) lease.Store {
	must(s != nil, "Tamper: the store must not be nil")
	must(f != nil, "Tamper: the function must not be nil")
	return wrap.Store(tampered{s, f}, s)
}

type tampered struct {
	lease.Store
	f func(name string, r *lease.Record)
}

func (s tampered) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	if err == nil {
		s.f(name, &snap.Record)
	}
	return snap, err
}

func (s tampered) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range s.Store.(lease.Lister).List(ctx, prefix) {
			if err == nil {
				s.f(e.Name, &e.Record)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Answer returns an authority that passes each request on to the authority a. Before the caller gets the
// answer, the function f can change this answer. For example, f can remove the record from the answer, or
// reduce MinRemaining. The function f must be safe for concurrent use by multiple goroutines.
func Answer(a lease.Authority, f func(req lease.Request, res *lease.Result, err *error)) lease.Authority {
	must(a != nil, "Answer: the authority must not be nil")
	must(f != nil, "Answer: the function must not be nil")
	return wrap.Authority(answering{a, f}, a)
}

type answering struct {
	lease.Authority
	f func(lease.Request, *lease.Result, *error)
}

func (a answering) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	a.f(req, &res, &err)
	return res, err
}
