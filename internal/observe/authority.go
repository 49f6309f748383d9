package observe

import (
	"context"

	"github.com/fencedlease/lease"
)

// An Authority is the one that [lease.NewAuthority] makes of a [Store], with fewer
// exchanges: a request that writes, by what was last seen of the lease, begins with the swap,
// so that a renewal is one exchange and an uncontended acquire at most two. A refusal, and a
// result that writes nothing, is still decided only on what was seen within the call.
type Authority struct{ store *Store }

// Authority returns an Authority over s.
func (s *Store) Authority() *Authority { return &Authority{s} }

// Do carries out one request.
func (a *Authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	b := a.store.begin(name, req)
	res, err := lease.NewAuthority(b).Do(ctx, name, req)
	if err == nil && b.committed.Version != "" {
		res.Record = b.committed.Record.At(res.Now) // which ends as it is observed, not as it was decided
	}
	return res, err
}

// Watch is that of the engine.
func (a *Authority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return a.store.Watch(ctx, name)
}

// A beginning is a Store for one request.
type beginning struct {
	*Store
	remembered lease.Snapshot // answers the first Load, if it has a version
	opening    bool           // the request writes a name that is not known
	committed  lease.Snapshot // what the last Swap returned
}

// begin decides whether the request may begin from memory. Step is pure, so that what it says
// here is what the authority is about to do: nothing that is remembered is ever an answer.
func (s *Store) begin(name string, req lease.Request) *beginning {
	b := &beginning{Store: s, opening: req.Action == lease.Acquire}
	if last, ok := s.remembered(name); ok {
		next, err := lease.Step(last.Record, req, last.Now)
		if err == nil && next != last.Record.At(last.Now) {
			b.remembered = last
		}
	}
	return b
}

func (b *beginning) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if last := b.remembered; last.Version != "" {
		b.remembered = lease.Snapshot{}
		return last, nil
	}
	if b.opening {
		return b.load(ctx, name, b.engine.Open)
	}
	return b.Store.Load(ctx, name)
}

func (b *beginning) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	swapped, err := b.Store.Swap(ctx, name, old, next)
	if err == nil {
		b.committed = swapped
	}
	return swapped, err
}
