package pglease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// An engine is the exchanges that an authority makes.
type engine interface {
	lease.Store
	lease.Limiter
	renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)
}

// An authority is like that of [lease.NewAuthority], with fewer exchanges. It begins a renewal, a
// change and a release with what it committed last under the name, as if no time had passed since.
// That is safe: what a change and a release make does not depend on the time, the server counts a
// renewal from its own time, and each commits only if the row is the same and has not come to its
// end. A refusal, and a result that writes nothing, are decided on a load. So is a request that
// conflicts.
type authority struct {
	store remembering
	lease.Lister
}

func (s *rows) authority() authority {
	return authority{remembering{s, s.memory}, lease.NewAuthority(s).(lease.Lister)}
}

// Do carries out one request.
func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRenew {
		ctx = urgently(ctx)
	}
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
		return s.Swap(ctx, name, old, next)
	}
	snap, err := s.renew(ctx, name, old, next)
	s.memory.note(name, snap, err)
	return snap, err
}

func (s remembering) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.engine.Swap(ctx, name, old, next)
	s.memory.note(name, snap, err)
	return snap, err
}
