package lease

import "context"

// A Lease lets a program acquire, check and release one lease. A Lease has one name and one owner. Its
// methods correspond to those of the type Lease in Akka Coordination and in actor-ts. A session.Session is a
// Lease over any [Authority]. A program needs no other interface of this package in order to use leases. The
// function [AcquireWithToken] acquires a Lease and returns the fencing token that its writes must carry.
//
// A term is one period in which the lease is held. A term begins when an Acquire is granted, and ends when
// the lease is released or lost. An event of one term, such as a loss, never affects another term.
//
// All methods must be safe for concurrent use. Handlers of OnLost may call the methods too.
type Lease interface {
	// Acquire tries once to acquire the lease, and does not wait until it is free.
	//
	//   - (true, nil): the lease is held now.
	//   - (false, nil): the lease was certainly not granted, because it is locked: another holder has the
	//     lease, the authority cannot rule out that another holder has it, or the lease is breaking.
	//   - (false, err): an argument is bad, or the outcome is unknown. Such a call never makes the holder
	//     rely on the lease, even if the authority has granted it. A lease that is granted after ctx has
	//     ended is released.
	//
	// If the lease is already held, Acquire sends no request and returns true. If ctx is done before the
	// call, Acquire sends no request. If ctx ends during the call, Acquire returns the error of ctx at once.
	// If ctx ends after Acquire has returned true, the holder keeps the lease.
	//
	// Some stores, such as etcdlease, have no clock. The authority of such a store counts the duration of a
	// lease from the time at which it first reads the record. If the last holder has crashed, the first call
	// of Acquire in a new process is therefore refused, even long after the crash. If each new process exits
	// when its first Acquire is refused, no process ever acquires the lease. So over such a store, call
	// session.TryRun instead, or session.AcquireWait with a context that lasts longer than the Duration of
	// the lease.
	Acquire(ctx context.Context) (bool, error)

	// Release ends the term and releases the lease. As soon as Release is called, CheckAlive returns false,
	// even if Release returns an error or ctx is done. An Acquire that is still running then does not return
	// true.
	//
	// Release returns nil if the lease is released, or if there was nothing to release. The first Release
	// after a loss returns the [*LostError], unless an Acquire was granted in between. After any other error,
	// the authority might still have the lease locked for this holder: call Release again, or wait until the
	// lease expires.
	Release(ctx context.Context) error

	// CheckAlive reports whether the lease is certainly still held. It compares the clock with the end of the
	// lease, so it does no I/O and does not block. Once the lease has ended, CheckAlive returns false, even
	// if the background goroutines of the holder have not noticed the end yet.
	CheckAlive() bool

	// OnLost registers f to be called once for every term that is lost. Each call runs in a goroutine of its
	// own, and its argument is a [*LostError]. OnLost does not call f for a term that ended by Release, or
	// for a term that was lost before f was registered. If the lease is lost while a call of Acquire is still
	// running, the result of that call is decided before f is called.
	//
	// The returned function unregisters f, and reports whether f was still registered. It does not wait for a
	// call of f that has already begun.
	OnLost(f func(error)) (stop func() bool)
}

// A TokenAcquirer is a [Lease] that returns a fencing token with every grant. It is safe for concurrent use.
type TokenAcquirer interface {
	Lease

	// AcquireWithToken is like Acquire, but also returns the fencing token of the lease. If AcquireWithToken
	// does not return true, the token is empty.
	AcquireWithToken(ctx context.Context) (Token, bool, error)
}

// AcquireWithToken acquires l and returns its fencing token. If l is not a [TokenAcquirer], it calls
// l.Acquire and returns an empty token, which no guard accepts. If l is nil, it returns a [*FieldError].
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

// A Waiter is a [Lease] that can wait until the lease is free. Its methods are safe for concurrent use.
type Waiter interface {
	Lease

	// Wait blocks until the lease is free, and then returns nil. Wait also returns nil if it cannot find out
	// whether the lease is free, so call Acquire whenever Wait has returned nil. If ctx ends before the lease
	// is free, Wait returns the error of ctx.
	Wait(ctx context.Context) error
}

// WhileHeld derives a context from ctx for work that must stop when the lease ends. When the work is done,
// call the returned function to release the resources of the context.
//
// If l has a method WhileHeld, the function calls that method. The method WhileHeld of a session.Session
// returns a context for the term that is held at the time of the call. The context ends when ctx ends or the
// returned function is called, and in three other cases, each with its own [context.Cause]:
//
//   - The lease is lost, or the stop window before its end begins. The cause is a [*LostError].
//   - Release, HandOver or Close is called. The cause is [ErrReleased].
//   - The lease is not held at the time of the call. The context has then ended already, and the cause is
//     [ErrNotHeld].
//
// If l has no such method, the context ends when the lease is lost, or at once if the lease is not held. A
// release does not end the context: if the lease is released and acquired again, the context ends only when
// the new term is lost.
//
// WhileHeld panics if ctx or l is nil.
func WhileHeld(ctx context.Context, l Lease) (context.Context, context.CancelFunc) {
	if ctx == nil {
		panic("lease: WhileHeld: the context must not be nil")
	}
	if l == nil {
		panic("lease: WhileHeld: the Lease must not be nil")
	}
	if l, ok := l.(interface {
		WhileHeld(context.Context) (context.Context, context.CancelFunc)
	}); ok {
		return l.WhileHeld(ctx)
	}
	held, cancel := context.WithCancelCause(ctx)
	stop := l.OnLost(func(err error) {
		if err == nil { // a Lease of Akka passes no error if another holder has taken it
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
