package engine

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// A Renewal renews a lease in one request to the server. It replaces the record old.Record with the given new
// record, and returns the new snapshot. The two records differ only in Until, which the server computes from
// its own clock. A Renewal returns [lease.ErrConflict] if the record has changed or the lease has ended.
type Renewal func(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)

// NewAuthority returns an authority that stores its records in s. The parameter s must be the store of a
// server that has a clock. The authority behaves like that of [lease.NewAuthority], but sends fewer requests
// to the server. To renew, change or release a lease, it does not load the current record first, but uses the
// record that it wrote last, which is in m. The remembered record is enough, because:
//
//   - The result of a change or a release does not depend on the time.
//   - The server computes the end of a renewed lease from its own clock.
//   - A write succeeds only if the record is unchanged and has not reached its end.
//
// The authority always loads the record before it refuses a request, and before it grants one without a
// write. If a write conflicts, the authority loads the record and decides again. The authority marks the
// contexts of renewals and releases, so that [IsUrgent] returns true for them.
//
// If renew is nil, the authority renews a lease by loading the record and then writing it. If m is nil, the
// authority remembers the records of up to [DefaultMemory] names.
func NewAuthority(s lease.Store, renew Renewal, m *Memory) lease.Authority {
	if m == nil {
		m = NewMemory(DefaultMemory)
	}
	noting := store{s, m}
	return wrap.Authority(&authority{noting, lease.NewAuthority(wrap.Store(noting, s)), renew}, lease.NewAuthority(s))
}

// An authority is always used as a pointer, because callers can then compare two authorities. Two values of
// this type could not be compared, because a Renewal is a function.
type authority struct {
	store  store
	loads  lease.Authority
	renews Renewal
}

// Do carries out one request.
func (a *authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	ctx = urgentIf(ctx, req.Action)
	switch req.Action {
	case lease.ActionRenew, lease.ActionChange, lease.ActionRelease:
		snap, err := a.tryRemembered(ctx, name, req)
		switch {
		case err == nil:
			return lease.Result{Record: snap.Record, Now: snap.Now, MinRemaining: snap.Record.Remaining(snap.Now)}, nil
		case !errors.Is(err, lease.ErrConflict):
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
		}
	}
	return a.loads.Do(ctx, name, req)
}

// tryRemembered applies req to the remembered record, and writes the new record with one request to the
// server. If the caller has to load the current record instead, tryRemembered returns [lease.ErrConflict].
// The caller has to load the record if no record is remembered, if ctx is done, if the write conflicts, or if
// the server cannot renew a lease in one request. The caller also has to load the record if the request would
// be refused or would need no write, because the remembered record may be out of date.
func (a *authority) tryRemembered(ctx context.Context, name string, req lease.Request) (lease.Snapshot, error) {
	old, known := a.store.memory.recall(name)
	if !known || ctx.Err() != nil {
		return lease.Snapshot{}, lease.ErrConflict
	}
	next, refusal := lease.Step(old.Record, req, old.Now)
	if refusal != nil || next == old.Record && req.Action != lease.ActionRenew {
		return lease.Snapshot{}, lease.ErrConflict
	}
	switch {
	case req.Action != lease.ActionRenew, next.Until.IsZero():
		return a.store.Swap(ctx, name, old, next)
	case a.renews == nil:
		return lease.Snapshot{}, lease.ErrConflict
	}
	snap, err := a.renews(ctx, name, old, next)
	a.store.memory.noteRenewal(name, snap, err)
	return snap, err
}

// A store passes the result of every swap to its memory.
type store struct {
	lease.Store
	memory *Memory
}

func (s store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	s.memory.Note(name, snap, err)
	return snap, err
}
