package redislease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// An engine is a [lease.Store] that can also renew a lease with a single request to the server.
type engine interface {
	lease.Store
	lease.Limiter
	lease.Watcher
	lease.Lister
	renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)
}

// An authority returns the same results as the one that [lease.NewAuthority] makes, but sends fewer
// requests to the server. For each lease, an authority remembers the record that it wrote last. To
// renew, change or release a lease, it computes the new record from the remembered record, without
// loading the current record first. This is safe for three reasons:
//
//   - The result of a change or a release does not depend on the time.
//   - The server computes the end of a renewed lease from its own clock.
//   - A write succeeds only if the record is unchanged and has not reached its end.
//
// The authority always loads the record before it refuses a request. It also loads the record
// before it grants a request that needs no write. If a write conflicts, the authority loads the
// record and decides again.
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

// A rememberingStore is an engine that remembers the last record it wrote for each lease.
type rememberingStore struct {
	engine
	memory *memory
}

// tryRemembered applies req to the remembered record, and writes the new record with one request to
// the server. It returns [lease.ErrConflict] if no record is remembered, if ctx is done, or if the
// write fails with a conflict. It also returns [lease.ErrConflict] if, by the remembered record,
// the authority would refuse req or would have nothing to write. Then the caller must load the
// current record, because the remembered record may be out of date.
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
		return s.Swap(ctx, name, old, next)
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
