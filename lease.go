package lease

import "context"

// A Lease is a holder's side of one lease, under one name and one owner: the interface of
// Akka's and actor-ts' coordination Lease. It is implemented once, by session.Session over
// any [Authority]; a program that consumes leases needs no more than this.
//
// An incarnation is one period of holding, from a granted Acquire to its release or loss.
// A dead incarnation never lives again, and no event of one reaches another.
//
// All methods may be called from any number of goroutines and from inside handlers.
type Lease interface {
	// Acquire tries once to take the lease; it does not wait until it is free.
	//
	// (true, nil): held now. (false, nil): certainly not granted, because the lease is
	// locked: another has it, or may still have it for all that the authority knows, or it is
	// breaking. (false, err): not held as far as this holder will ever believe, and the
	// authority's side is unknown, or an argument was bad. A grant that arrives after Acquire
	// has returned is undone; it never surfaces.
	//
	// Over a store without a clock, such as etcdlease, an authority counts from when it first
	// saw the lease: a new process that asks once, and ends, is refused though the holder is
	// long dead. There, wait with session.AcquireWait, for longer than the Duration of the lease.
	//
	// A context that is done already makes no request; one that ends during Acquire makes it
	// return at once with the context's error. If the lease is held already, Acquire makes no
	// request and returns true; its context cannot end the holding.
	Acquire(ctx context.Context) (bool, error)

	// Release gives the lease up. From the call on CheckAlive is false, also if Release
	// errs or its context is done, and an Acquire under way is superseded. Nil means that
	// the lease was given up, or that there was nothing to give up. An error means that the
	// authority may not know: call again, or the lease ends by itself.
	Release(ctx context.Context) error

	// CheckAlive reports whether the lease is certainly still held: a comparison with the
	// clock, without I/O and without waiting. It is false from the end of what is certain,
	// also if no goroutine could run since.
	CheckAlive() bool

	// OnLost registers f to be called when a held lease is lost: once for every incarnation
	// that ends by loss, and not for one that ends by Release. The error is a [*LostError].
	// Handlers run each in a goroutine of its own, after the granting Acquire was decided. A
	// handler registered after a loss is not told of that one.
	//
	// The function stop unregisters f and reports whether it was still registered; it does
	// not wait for a call of f that has begun.
	OnLost(f func(error)) (stop func() bool)
}

// A TokenAcquirer is a Lease that issues fencing tokens.
type TokenAcquirer interface {
	Lease

	// AcquireWithToken is Acquire and returns the token of the incarnation that is held,
	// empty unless it returns true.
	AcquireWithToken(ctx context.Context) (Token, bool, error)
}

// AcquireWithToken acquires l and returns its fencing token. If l is not a
// [TokenAcquirer] it calls Acquire; then the token is empty and guards nothing.
func AcquireWithToken(ctx context.Context, l Lease) (Token, bool, error) {
	if l == nil {
		return "", false, missing("AcquireWithToken.l")
	}
	if l, ok := l.(TokenAcquirer); ok {
		return l.AcquireWithToken(ctx)
	}
	ok, err := l.Acquire(ctx)
	return "", ok, err
}

// A Waiter is a Lease that can wait.
type Waiter interface {
	Lease

	// Wait returns nil when it may be worth to call Acquire again: the lease is free, or
	// nothing better than asking is known. It returns the context's error if that ends first.
	Wait(ctx context.Context) error
}

// WhileHeld returns a context for work that must stop when the lease is gone, and a
// function that frees what it needs; call that when the work is done.
//
// If l has a method of the same name, WhileHeld calls it. The context of a session.Session
// belongs to the incarnation that is held at the call: it ends at the moment from which the
// lease is no longer certain, at the loss ([context.Cause] is the [*LostError]) or at
// Release (the cause is [ErrReleased]), and at once if nothing is held ([ErrNotHeld]).
//
// For any other Lease, WhileHeld makes do with OnLost and CheckAlive. It then ends at a
// loss, or at once if nothing is held. It does not notice a Release, it may be ended by
// the loss of a later incarnation, and it is as late as the handler is called.
//
// WhileHeld panics if l is nil.
func WhileHeld(ctx context.Context, l Lease) (context.Context, context.CancelFunc) {
	if l == nil {
		panic("lease: WhileHeld of a nil Lease")
	}
	if l, ok := l.(interface {
		WhileHeld(context.Context) (context.Context, context.CancelFunc)
	}); ok {
		return l.WhileHeld(ctx)
	}
	held, cancel := context.WithCancelCause(ctx)
	stop := l.OnLost(func(err error) {
		if err == nil { // Akka's lease tells no cause when another has taken it
			err = ErrLost
		}
		cancel(err)
	})
	if !l.CheckAlive() {
		cancel(ErrNotHeld)
	}
	return held, func() {
		stop()
		cancel(context.Canceled)
	}
}
