package lease

import (
	"context"
	"errors"
	"time"
)

// An Authority grants leases. It is the only waist of this library: whatever can carry
// out a [Request] can be held through a session.Session, tested by package leasetest and
// served by package blobtest. [NewAuthority] makes one of a [Store].
//
// An Authority may be used by any number of goroutines. Optional abilities are [Watcher] and
// [Lister].
type Authority interface {
	// Do carries out one request on the lease of that name. There are three outcomes.
	//
	// Granted: the error is nil, and the result shows the record after the action.
	//
	// Refused, or never possible: the error is an [*OpError] around a [Code], or around a
	// [*FieldError] that leads to one. The request changed nothing. With a Code for which
	// [Code.Refusal] is true, the result shows the record that decided, if the authority
	// tells it.
	//
	// Unknown: any other error. The request may have been carried out, or may yet be.
	Do(ctx context.Context, name string, req Request) (Result, error)
}

// A Result shows a lease as the authority saw it when it decided.
type Result struct {
	Record Record

	// Now is the authority's time. If it is zero the result shows nothing.
	Now time.Time

	// MinRemaining bounds the time that is left from below: counted from the sending of the
	// request, the record's ID is certain to stay locked for at least this long, if nobody
	// breaks, changes or releases it. It is 0 if the record is not locked.
	MinRemaining time.Duration
}

// MaxRemaining bounds the time that is left from above: counted from the answer, the lease
// stays locked for at most this long if its holder does nothing. It is Infinite for an
// infinite lease.
func (r Result) MaxRemaining() time.Duration { return r.Record.Remaining(r.Now) }

// Break breaks the lease under name without knowing its ID, and returns how long it stays
// locked: 0 if the break is immediate. The holder keeps the lease for the period, if that is
// shorter than what is left of it, and learns of the break when it next asks: a session.Session
// within its RenewInterval and RequestTimeout, 15 s by default, or with its Options.Watch as soon
// as it has asked. A shorter period may be over before the holder knows; until then it goes on
// believing.
func Break(ctx context.Context, a Authority, name string, p Period) (left time.Duration, err error) {
	if a == nil {
		return 0, missing("Break.a")
	}
	res, err := a.Do(ctx, name, Request{Action: ActionBreak, Period: p})
	if err != nil {
		return 0, err
	}
	return res.MaxRemaining(), nil
}

// Inspect shows the lease under name. It changes nothing.
func Inspect(ctx context.Context, a Authority, name string) (Result, error) {
	if a == nil {
		return Result{}, missing("Inspect.a")
	}
	return a.Do(ctx, name, Request{Action: ActionRead})
}

// NewAuthority makes an Authority of a Store: it loads the record, steps it, and swaps the
// result in, again from the start if the swap conflicts, until the context is done. It
// remembers nothing between calls. A refusal, and a result that needs no writing, always
// come from a Load made within the call, or from what a conflict within it showed, since Swap
// refuses stale writes but not stale answers.
//
// If s is a [Limiter], every request is held against its Limits, and a record that claims
// more than the longest duration counts as ending after that duration from when it is
// first seen by a request other than an [ActionRead]. If s is a [Watcher] or a [Lister], so is the
// Authority.
// NewAuthority panics if s is nil, and with the error of [Limits.Validate] if there is one.
func NewAuthority(s Store) Authority {
	if s == nil {
		panic("lease: NewAuthority of a nil Store")
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
				return err
			}
		}
		next := old.Record
		write, refusal := a.limits.decide(&next, req, old.Now)
		if refusal != 0 || !write {
			if write {
				// The record claims too much, and what it may claim is written down. If that fails,
				// the next request tries again.
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
			// What is certain is counted from the commit, not from the decision before it: then a
			// store that answers a load with an old time cannot make a holder believe too long.
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

func (res *Result) show(r *Record, now time.Time, uncertainty time.Duration) {
	res.Record, res.Now, res.MinRemaining = *r, now, max(0, sub(r.remaining(now), uncertainty))
}

func sub(d, uncertainty time.Duration) time.Duration {
	if d == Infinite {
		return Infinite
	}
	return d - uncertainty
}
