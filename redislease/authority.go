package redislease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// An engine is a [lease.Store] that can also renew a lease in one exchange.
type engine interface {
	lease.Store
	lease.Limiter
	lease.Watcher
	lease.Lister
	renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)
}

// An authority gives the same answers as an authority of [lease.NewAuthority], but needs fewer
// exchanges. An authority remembers the record that it committed last under each name. It computes
// a renewal, a change or a release from the remembered record, without a load. This is safe for
// three reasons:
//
//   - The result of a change or a release does not depend on the time.
//   - The server computes the end of a renewed lease from its own clock.
//   - A write succeeds only if the record is unchanged and has not reached its end.
//
// An authority loads the record before it refuses a request, and before it grants a request that
// needs no write. If a write conflicts, the authority loads the record and decides again.
type authority struct {
	lease.Watcher
	lease.Lister
	store rememberingStore
}

func newAuthority(e engine, m *memory) authority {
	return authority{e, lease.NewAuthority(e).(lease.Lister), rememberingStore{e, m}}
}

// Do carries out one request.
func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	switch req.Action {
	case lease.ActionRenew, lease.ActionChange, lease.ActionRelease:
		snap, err := a.store.tryRemembered(ctx, name, req)
		switch {
		case err == nil:
			return lease.Result{Record: snap.Record, Now: snap.Now, MinRemaining: snap.Record.Remaining(snap.Now)}, nil
		case !errors.Is(err, lease.ErrConflict):
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
		}
	}
	return lease.NewAuthority(a.store).Do(ctx, name, req)
}

// A rememberingStore is an engine that remembers the records that it commits.
type rememberingStore struct {
	engine
	memory *memory
}

// tryRemembered computes the result of req from the remembered record, and commits the result in
// one exchange. It returns [lease.ErrConflict] if no record is remembered, if the request would be
// refused, if nothing would be written, or if the record has changed.
func (s rememberingStore) tryRemembered(ctx context.Context, name string, req lease.Request) (lease.Snapshot, error) {
	old, known := s.memory.recall(name)
	if !known || ctx.Err() != nil {
		return lease.Snapshot{}, lease.ErrConflict
	}
	next, refusal := lease.Step(old.Record, req, old.Now)
	if refusal != nil || next == old.Record && req.Action != lease.ActionRenew {
		return lease.Snapshot{}, lease.ErrConflict
	}
	if req.Action != lease.ActionRenew || next.Until.IsZero() {
		snap, err := s.Swap(ctx, name, old, next)
		return snap, err
	}
	snap, err := s.renew(ctx, name, old, next)
	s.memory.note(name, snap, err)
	return snap, err
}

// Swap calls Swap of the engine and remembers the result.
func (s rememberingStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.engine.Swap(ctx, name, old, next)
	s.memory.note(name, snap, err)
	return snap, err
}
