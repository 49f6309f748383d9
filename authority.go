package lease

import (
	"context"
	"errors"
	"time"
)

// An Authority grants leases. It is the one interface between the two halves of this library:
// session.Session holds a lease over any Authority, package leasetest tests any Authority, and
// package blobtest serves one over HTTP. [NewAuthority] makes an Authority of a [Store].
//
// Do must be safe for use by several goroutines at once. Optional abilities are [Watcher] and
// [Lister].
type Authority interface {
	// Do carries out one request on the lease with that name. There are three outcomes:
	//
	//   - Granted: the error is nil, and the result shows the record after the action.
	//   - Refused: the error is an [*OpError] around a [Code], or around a [*FieldError] with a
	//     Code if an argument is bad. The request changed nothing and never will. If
	//     [Code.Refusal] is true of the Code, the result shows the record that decided, unless
	//     the authority does not disclose it.
	//   - Unknown: any other error. The request may have been carried out, or may be later.
	//
	// Do must return soon after ctx ends, even if the engine does not answer. The outcome is then
	// unknown, unless the request was not sent. If ctx is done before the call, Do sends nothing.
	Do(ctx context.Context, name string, req Request) (Result, error)
}

// A Result shows a lease as the authority saw it when it decided.
type Result struct {
	// Record is the record after the action, or the one that decided a refusal, as it stood at Now.
	Record Record

	// Now is the authority's time. If it is zero, the result shows nothing.
	Now time.Time

	// MinRemaining is a lower bound of the time that is left. The record's ID stays locked for at
	// least this long after the request was sent, unless the lease is broken, changed or released.
	// It is 0 if the record is not locked, and Infinite for an infinite lease.
	MinRemaining time.Duration
}

// MaxRemaining is an upper bound of the time that is left. The lease stays locked for at most this
// long after the answer arrived, if its holder sends nothing more. It is 0 if the record is not
// locked, and Infinite for an infinite lease.
func (r Result) MaxRemaining() time.Duration { return r.Record.Remaining(r.Now) }

// Break breaks the lease under name, without knowing its ID, and returns how long the lease stays
// locked. Its holder keeps the lease for the period p, or for the time that is left if that is less.
// The zero Period lets a finite lease run until its end, and breaks an infinite lease at once.
//
// The holder learns of the break from the answer to its next request. A session.Session sends one
// within its RenewInterval, and by default has the answer within 15 s. With Options.Watch it sends
// one as soon as the record changes. If the period is shorter than that, it is over before the
// holder knows: the holder then still believes that it has the lease.
//
// The error is that of [Authority.Do]. If the lease is Available, the error leads to [ErrNotPresent].
func Break(ctx context.Context, a Authority, name string, p Period) (left time.Duration, err error) {
	if a == nil {
		return 0, Missing("Break.a")
	}
	res, err := a.Do(ctx, name, Request{Action: ActionBreak, Period: p})
	if err != nil {
		return 0, err
	}
	return res.MaxRemaining(), nil
}

// Inspect returns the lease under name. It changes nothing, and its error is that of [Authority.Do].
func Inspect(ctx context.Context, a Authority, name string) (Result, error) {
	if a == nil {
		return Result{}, Missing("Inspect.a")
	}
	return a.Do(ctx, name, Request{Action: ActionRead})
}

// NewAuthority makes an Authority of a Store. For each request it loads the record, calls [Decide],
// and swaps the result in. If the swap conflicts, it starts again, until the context is done.
//
// It remembers nothing between calls. So a refusal, and a result that needs no writing, always rest
// on a record that was read within the call. Swap refuses a stale write, but nothing would refuse a
// stale answer.
//
// If s is a [Limiter], NewAuthority checks every request against its Limits. A record that claims
// more time than the Limits allow is cut to the longest duration, counted from the first request
// other than an [ActionRead] that sees it. If s is a [Watcher] or a [Lister], so is the Authority.
//
// NewAuthority panics if s is nil, or if [Limits.Validate] returns an error.
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
				return err
			}
		}
		next := old.Record
		write, refusal := a.limits.decide(&next, req, old.Now)
		if refusal != 0 || !write {
			if write {
				// The record claimed more than the limits allow. If writing it down fails, the next
				// request tries again.
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
			// Count MinRemaining from the commit, not from the decision before it. Then a store
			// that answers a load with an old time cannot make a holder believe for too long.
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
