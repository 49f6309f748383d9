package lease

import "context"

// A Lease is the holder's side of one lease, with one name and one owner. It is the interface of the
// coordination Lease of Akka and actor-ts. session.Session implements it over any [Authority]. A
// program that uses leases needs no other interface of this package.
//
// An incarnation is one period of holding: it begins with a granted Acquire and ends with a release
// or a loss. Once ended it never holds again, and no event of one incarnation affects another.
//
// All methods must be safe for use by several goroutines at once, and inside handlers.
type Lease interface {
	// Acquire tries once to take the lease. It does not wait until the lease is free.
	//
	//   - (true, nil): the lease is held now.
	//   - (false, nil): the lease was certainly not granted, because it is locked. Another holder
	//     has it, or may have it for all that the authority knows, or it is breaking.
	//   - (false, err): an argument is bad, or the outcome is unknown. This holder will never
	//     believe that it holds the lease because of this call. A grant that arrives after
	//     Acquire has returned is undone.
	//
	// If the lease is held already, Acquire sends no request and returns true. If ctx is done
	// before the call, Acquire sends no request. If ctx ends during the call, Acquire returns its
	// error at once. If ctx ends after Acquire has returned true, the lease is still held.
	//
	// Over a store without a clock, such as etcdlease, an authority counts from when it first
	// saw the lease. A new process that calls Acquire once and exits is refused even if the
	// holder is long dead. There, use session.TryRun, or
	// session.AcquireWait with a context that lasts for longer than the Duration of the lease.
	Acquire(ctx context.Context) (bool, error)

	// Release gives the lease up. Once Release is called, CheckAlive returns false, even if
	// Release returns an error or ctx is done. An Acquire that is under way does not return true.
	//
	// Nil means that the lease is released, or that there was nothing to release. An error means
	// that the authority may still hold the lease for this holder: call Release again, or the
	// lease ends by itself.
	Release(ctx context.Context) error

	// CheckAlive reports whether the lease is certainly still held. It compares the clock with
	// the end of the lease: it does no I/O and does not wait. It turns false at that end even if
	// no goroutine of the holder has run since.
	CheckAlive() bool

	// OnLost registers f to be called when the lease is lost. It is called once for every
	// incarnation that ends by a loss, and not for one that ends by Release. Its argument is a
	// [*LostError]. Each call of f runs in a goroutine of its own, and not before the Acquire that
	// granted the incarnation has its result. If f is registered after a loss, it is not called
	// for that loss.
	//
	// The function stop unregisters f, and reports whether f was still registered. It does not
	// wait for a call of f that has begun.
	OnLost(f func(error)) (stop func() bool)
}

// A TokenAcquirer is a Lease that issues fencing tokens.
type TokenAcquirer interface {
	Lease

	// AcquireWithToken is Acquire, and also returns the token of the incarnation that is held.
	// The token is empty if AcquireWithToken does not return true.
	AcquireWithToken(ctx context.Context) (Token, bool, error)
}

// AcquireWithToken acquires l and returns its fencing token. If l is not a [TokenAcquirer], it calls
// Acquire and returns an empty token, which no guard accepts. If l is nil, it returns a [*FieldError].
func AcquireWithToken(ctx context.Context, l Lease) (Token, bool, error) {
	if l == nil {
		return "", false, Missing("AcquireWithToken.l")
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

	// Wait returns nil when it may be worth calling Acquire again: the lease is free, or only an
	// Acquire can tell. If ctx ends first, Wait returns its error.
	Wait(ctx context.Context) error
}

// WhileHeld returns a context for work that must stop when the lease ends. Call the returned function
// when the work is done: it frees the resources of the context.
//
// If l has a method WhileHeld, that is called. The context of a session.Session belongs to the
// incarnation that is held at the call. It ends, with this [context.Cause]:
//
//   - a stop window before the lease is no longer certain, or when it is lost: a [*LostError]
//   - at Release: [ErrReleased]
//   - at once if nothing is held: [ErrNotHeld]
//
// For any other Lease, WhileHeld uses OnLost and CheckAlive. Then the context ends when the handler
// of OnLost is called, or at once if nothing is held. It does not end at a Release, and it may end at
// the loss of a later incarnation.
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
		if err == nil { // Akka's lease gives no cause if another holder has taken it
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
