package lease

import (
	"context"
	"errors"
	"time"
)

// An Authority grants leases to the holders that send it requests. A session.Session can hold a lease of any
// Authority. [NewAuthority] makes an Authority from a [Store], package leasetest has tests for every
// Authority, and package blobtest serves an Authority over HTTP.
//
// An Authority may also implement the optional interfaces [Watcher] and [Lister].
type Authority interface {
	// Do carries out one request on the lease with the given name. Do must be safe for concurrent use. The
	// outcome is one of three:
	//
	//   - Granted: the error is nil. The Result has the record after the action.
	//   - Refused: the error is an [*OpError] that wraps a [Code] or, for a bad argument, a [*FieldError]
	//     with a Code. The request has not changed the lease and never will, except that the authority may
	//     have shortened a record that exceeded its limits. If [Code.Refusal] returns true for the Code, the
	//     Result has the record that led to the refusal, or a zero Now if the authority hides that record.
	//   - Unknown: any other error. The authority might have carried out the request, or still do so.
	//
	// Do must return soon after ctx ends, even if the database or service behind the Authority does not
	// answer. The outcome of such a request is unknown. If ctx is done before the call, Do sends no request.
	Do(ctx context.Context, name string, req Request) (Result, error)
}

// A Result is the state of a lease at the moment when the authority decided a request.
type Result struct {
	// Record is the record after the action if the request was granted, and otherwise the record that led to
	// the refusal. Record.State is the state at the time of the decision (see [Record.At]).
	Record Record

	// Now is the time of the decision, on the authority's clock. If Now is zero, ignore the other fields.
	Now time.Time

	// MinRemaining is a lower bound on the time for which the lease stays locked under Record.ID, counted
	// from the time at which the request was sent. A later request can still end or shorten the lease, or
	// change its ID. MinRemaining is 0 if the lease is not locked, and Infinite for an infinite lease.
	MinRemaining time.Duration
}

// MaxRemaining returns an upper bound on how long the lease stays locked after the answer has arrived, if the
// holder sends no other request. The result is 0 if the lease is not locked, and [Infinite] if the lease is
// infinite.
func (r Result) MaxRemaining() time.Duration { return r.Record.Remaining(r.Now) }

// Break breaks the lease with the given name, and returns how long it stays locked. The caller need not know
// the lease ID. The holder keeps the lease for the period p, or for the remaining time of the lease if that
// is shorter. With the zero Period, a finite lease runs until its end, and an infinite lease ends at once.
//
// A session.Session learns of the break from the answer to its next request, at most one RenewInterval later.
// With session.Options.Watch, it learns of the break as soon as the record changes. If p ends before the
// Session knows of the break, the lease is unlocked although the Session still relies on it.
//
// The contexts of WhileHeld and Run end one StopWindow before the lease ends. To leave the work some time
// between the call of the OnBreaking handlers and the end of its context, choose a p of at least
//
//	RenewInterval + 2 RequestTimeout + StopWindow + the time for the work
//
// With the defaults, p must be at least 25 s plus the time for the work. The two RequestTimeouts allow for a
// slow renewal: the Session then learns of the break later, and counts the remaining time from the moment at
// which it sent the renewal. If a renewal fails, the Session learns of the break still later. With Watch, the
// Session reads the record instead of waiting for its next renewal. As long as the watch does not fail, a
// shorter p is therefore enough:
//
//	3 RequestTimeout + StopWindow + the time for the work
//
// With the defaults and Watch, p must be at least 20 s plus the time for the work.
//
// If the store has no clock, the Session counts p from the last time at which it knew its record to be
// unchanged. Without Watch, the first formula allows for this. With Watch, p must be longer, by a time that
// depends on the store. For etcdlease, kubelease and natslease, this time is a fifteenth of Duration, but at
// most 4 s. For example, it is 2 s with leases of 30 s. For any other store without a clock, this time is
// RenewInterval.
//
// A break never makes a lease longer, so the grace period cannot exceed the remaining time of the lease. With
// the defaults, this remaining time is at least 15 s if every renewal has succeeded: the Duration of 30 s,
// less the RenewInterval of 10 s and the RequestTimeout of 5 s. A longer grace period needs a longer
// Duration.
//
// Break returns the error of [Authority.Do], which wraps [ErrNotPresent] if the lease is Available. If a is
// nil, Break returns a [*FieldError]. If ctx is nil, Break panics.
func Break(ctx context.Context, a Authority, name string, p Period) (left time.Duration, err error) {
	if ctx == nil {
		panic("lease: Break: the context must not be nil")
	}
	if a == nil {
		return 0, missing("Break.a")
	}
	res, err := a.Do(ctx, name, Request{Action: ActionBreak, Period: p})
	if err != nil {
		return 0, err
	}
	return res.MaxRemaining(), nil
}

// Inspect returns the state of the lease with the given name, and does not change the lease. The error is
// that of [Authority.Do], or a [*FieldError] if a is nil. If ctx is nil, Inspect panics.
func Inspect(ctx context.Context, a Authority, name string) (Result, error) {
	if ctx == nil {
		panic("lease: Inspect: the context must not be nil")
	}
	if a == nil {
		return Result{}, missing("Inspect.a")
	}
	return a.Do(ctx, name, Request{Action: ActionRead})
}

// NewAuthority returns an Authority over the store s. For each request, the Authority calls [Store].Load,
// decides as [Decide] does, and calls [Store].Swap if the new record must be stored. If Swap returns
// [ErrConflict], the Authority tries again until the context is done. If Load fails, the request has
// certainly changed nothing, so the error also wraps [ErrUnsent], unless it has another Code.
//
// The Authority has no cache: each answer is based on a record that was read or written during the call. With
// a cache, a request that writes nothing could get a stale answer, because only Swap detects old records.
//
// If s is a [Limiter], the Authority checks every request against the [Limits] of s. If the remaining time of
// a stored record exceeds these Limits, the Authority shortens it to the longest time that they allow. This
// time begins with the first valid request that is not a read ([ActionRead]), because a read stores nothing.
// If s is a [Watcher] or a [Lister], so is the Authority.
//
// NewAuthority panics if s is nil, or if [Limits.Validate] returns an error for the Limits of s.
func NewAuthority(s Store) Authority {
	if s == nil {
		panic("lease: NewAuthority: the Store must not be nil")
	}
	a := &authority{store: s}
	if l, ok := s.(Limiter); ok {
		a.limits = l.Limits()
		if err := a.limits.Validate(); err != nil {
			panic(err)
		}
	}
	watcher, watches := s.(Watcher)
	lister, lists := s.(Lister)
	switch {
	case watches && lists:
		return struct {
			*authority
			Watcher
			Lister
		}{a, watcher, listing{lister, a.limits}}
	case watches:
		return struct {
			*authority
			Watcher
		}{a, watcher}
	case lists:
		return struct {
			*authority
			Lister
		}{a, listing{lister, a.limits}}
	}
	return a
}

type authority struct {
	store  Store
	limits Limits
}

// Do implements [Authority].
func (a *authority) Do(ctx context.Context, name string, req Request) (res Result, err error) {
	if checkLabel(name, ErrName) != 0 {
		err = CheckName(name)
	} else if err = a.limits.check(&req); err == nil {
		err = a.do(ctx, name, &req, &res)
	}
	if err != nil {
		err = &OpError{req.Action.String(), name, err}
	}
	return res, err
}

func (a *authority) do(ctx context.Context, name string, req *Request, res *Result) error {
	var old Snapshot
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if old.Version == "" {
			var err error
			if old, err = a.store.Load(ctx, name); err != nil {
				if CodeOf(err) == 0 {
					err = &unsentError{err}
				}
				return err
			}
		}
		next := old.Record
		write, refusal := a.limits.decide(&next, req, old.Now)
		if refusal != 0 || !write {
			if write {
				// The remaining time of the record exceeded the limits. Store the shortened record although
				// the request is refused. If Swap fails, the next request shortens the record again.
				_, _ = a.store.Swap(ctx, name, old, next)
			}
			res.show(&next, old.Now, old.Uncertainty)
			if refusal != 0 {
				return refusal
			}
			return nil
		}
		swapped, err := a.store.Swap(ctx, name, old, next)
		if err == nil {
			// The Result describes the lease at the time of the commit, not of the earlier load.
			swapped.Record.pass(swapped.Now)
			res.show(&swapped.Record, swapped.Now, swapped.Uncertainty)
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		old = swapped
	}
}

// An unsentError is the error of a failed Load. It wraps ErrUnsent, because the request has changed nothing:
// every earlier Swap of the same request has returned ErrConflict.
type unsentError struct{ error }

func (e *unsentError) Unwrap() []error { return []error{e.error, ErrUnsent} }

func (res *Result) show(r *Record, now time.Time, uncertainty time.Duration) {
	res.Record, res.Now, res.MinRemaining = *r, now, max(0, sub(r.remaining(now), uncertainty))
}

func sub(d, uncertainty time.Duration) time.Duration {
	if d == Infinite {
		return Infinite
	}
	return d - uncertainty
}
