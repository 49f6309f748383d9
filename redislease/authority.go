package redislease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// An engine is the exchanges that an authority makes.
type engine interface {
	lease.Store
	lease.Limiter
	lease.Watcher
	lease.Lister
	renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)
}

// An authority is the one that [lease.NewAuthority] makes of a store, with fewer exchanges. It
// begins a renewal, a change and a release with what it committed last under the name, as if no
// time had passed since. Time has passed, but what a change and a release make does not depend on
// it, a renewal is counted from the server's time, and each commits only if the version is the
// same and the record has not come to its until. So what is committed is what [lease.Step] makes
// at the server's time. A refusal, and a result that writes nothing, are decided on a load. So is
// every request whose first exchange conflicts.
type authority struct {
	lease.Watcher
	lease.Lister
	store remembering
}

func newAuthority(e engine, m *memory) authority {
	return authority{e, lease.NewAuthority(e).(lease.Lister), remembering{e, m}}
}

// Do carries out one request.
func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	switch req.Action {
	case lease.ActionRenew, lease.ActionChange, lease.ActionRelease:
		snap, err := a.store.again(ctx, name, req)
		switch {
		case err == nil:
			return lease.Result{Record: snap.Record, Now: snap.Now, MinRemaining: snap.Record.Remaining(snap.Now)}, nil
		case !errors.Is(err, lease.ErrConflict):
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
		}
	}
	return lease.NewAuthority(a.store).Do(ctx, name, req)
}

// A remembering store remembers what it commits.
type remembering struct {
	engine
	memory *memory
}

// again commits what the request makes of what is remembered, in one exchange. It is a conflict if
// that cannot be, or must not.
func (s remembering) again(ctx context.Context, name string, req lease.Request) (lease.Snapshot, error) {
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

// Swap swaps, and remembers what came of it.
func (s remembering) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.engine.Swap(ctx, name, old, next)
	s.memory.note(name, snap, err)
	return snap, err
}
