package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// A replyTo says where the outcome of a call goes.
type replyTo struct {
	ctx    context.Context
	answer func(outcome) // is called once, and must not block
}

// An input passes the call with number n to the machine.
type input func(m *machine, now time.Time, n uint64)

// needContext panics if ctx is nil. A method calls needContext before the method changes anything.
func needContext(ctx context.Context, call string) {
	if ctx == nil {
		panic("session: " + call + ": the context must not be nil")
	}
}

// begin chooses a number for a new call, passes the call to the state machine, and returns the
// number.
func (s *Session) begin(c replyTo, input input) (n uint64) {
	s.step(func(m *machine, now time.Time) {
		n = s.calls.Put(c)
		input(m, now, n)
	})
	return n
}

// cancel ends the call with the number n, with the outcome err. If the call already has an outcome,
// cancel does not change the outcome.
func (s *Session) cancel(n uint64, err error) {
	s.step(func(m *machine, now time.Time) { m.cancel(now, n, err) })
}

// call begins a call. The returned function waits for the answer. If the context of the returned
// function ends first, the function cancels the call.
func (s *Session) call(ctx context.Context, input input) (await func(context.Context) outcome) {
	answers := make(chan outcome, 1)
	n := s.begin(replyTo{ctx, func(o outcome) { answers <- o }}, input)
	return func(ctx context.Context) outcome {
		select {
		case o := <-answers:
			return o
		case <-ctx.Done():
			s.cancel(n, ctx.Err())
			return <-answers
		}
	}
}

// Acquire tries once to acquire the lease. Acquire does not wait until the lease is free. It returns
//
//   - (true, nil) if the Session holds the lease now;
//   - (false, nil) if the lease was certainly not granted, because it is locked;
//   - (false, err) in every other case: ctx has ended, Release or Close was called, an argument is
//     bad, or the outcome is unknown. A failed call never makes the Session hold the lease. If no
//     other Acquire follows a failed call, call Settle, because the authority might have granted
//     the request.
//
// If the Session already holds the lease, Acquire sends no request and returns true, even if another
// goroutine has acquired the lease. Acquire also returns true after the stop window has begun, until
// Release is called or the lease is lost. Call Release before Acquire to begin a new incarnation.
//
// Acquire usually sends one request. If the Session still has to release an old ID, it sends the
// release first. A take-over needs two more requests. The context of each request ends after
// RequestTimeout. [lease.Lease] describes Acquire over a store without a clock.
func (s *Session) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := s.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is like Acquire, but also returns the fencing token of the lease. If
// AcquireWithToken does not return true, the token is empty. If the Session already holds the lease,
// AcquireWithToken returns the token of the held incarnation.
//
// Concurrent calls are served one after the other. If ctx ends, AcquireWithToken returns the error of
// ctx at once. If Release or Close is called during the call, AcquireWithToken returns
// [lease.ErrReleased] at once. If the authority grants the request after one of these early returns,
// the Session releases the lease before it serves the next call.
//
// If the authority does not answer a release, the next call of Release or Close sends the release
// again. If a later Acquire is refused because the lease is still locked, the Session also sends
// the unanswered release again. A finite lease ends by itself, even without a release.
func (s *Session) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	return s.acquired(s.acquire(ctx))
}

func (s *Session) acquire(ctx context.Context) outcome {
	needContext(ctx, "acquire")
	if b, held := s.current(); held {
		return outcome{token: b.token}
	}
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	return s.call(ctx, (*machine).acquire)(ctx)
}

// acquired converts the outcome of an Acquire into the results of AcquireWithToken and AcquireUnlessHeld.
func (s *Session) acquired(o outcome) (lease.Token, bool, error) {
	switch o.err {
	case nil:
		return o.token, true, nil
	case errNotGranted, errPerhapsFree:
		return "", false, nil
	}
	return "", false, s.opError("acquire", o.err)
}

// AcquireUnlessHeld is like [Session.AcquireWithToken], but it returns (false, nil) only if another
// holder is certainly alive. Over an authority with a clock, AcquireUnlessHeld sends one Acquire and
// returns.
//
// When an authority without a clock, such as that of etcdlease, reads a record for the first time,
// it cannot know how old the record is. Over such an authority, AcquireUnlessHeld waits for at most
// the duration that the record states. If the holder renews the lease in this time, AcquireUnlessHeld
// returns false. If the record expires without a renewal, the holder is dead, and AcquireUnlessHeld
// acquires the lease. If ctx ends during the wait, AcquireUnlessHeld returns its error.
func (s *Session) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	for {
		o := s.acquire(ctx)
		if o.err != errPerhapsFree {
			return s.acquired(o)
		}
		isHeld := func(res lease.Result) bool { return res.MinRemaining > 0 }
		locked, err := s.wait(ctx, nil, isHeld)
		switch {
		case err == error(lease.ErrReleased): // treat it like an Acquire that is in flight
			return s.acquired(outcome{err: err})
		case locked || err != nil:
			return "", false, err
		}
	}
}

// Release gives the lease up. As soon as Release is called, CheckAlive returns false. Release returns
//
//   - nil if the lease is released, or if there was nothing to release;
//   - the [*lease.LostError] of a loss, if it is the first Release since then and no Acquire came in
//     between. A program that acquires, works and releases learns in this way that it lost its lease;
//   - an error if ctx has ended or a request has failed. The lease can then stay locked until it
//     expires. Call Release again to release it earlier.
//
// The context of each request ends after RequestTimeout. Release does not call the handlers of OnLost.
//
// Release also releases the lease if an earlier call with an unknown outcome may have acquired it.
// If [Session.ID] has returned the ID that the next Acquire proposes, another holder might have
// handed the lease over to the proposed ID. Release therefore releases the lease under the proposed
// ID too.
//
// Release sends its request even if ctx is done. If ctx ends while Release waits for the answer,
// Release returns the error of ctx. If ctx ends at the moment when the answer arrives, Release
// returns either the error of ctx or the result of the release. If ctx is a context of
// [Session.WhileHeld], Release itself ends ctx, and still waits for the answer. If an Acquire is
// still running, Release ends the Acquire. If the authority might have granted an Acquire that
// Release has ended, Release also waits until the lease is released.
//
// If an Acquire of an infinite lease had an unknown outcome, call Release twice, the second time
// after a while. The request of the Acquire can reach the authority after the first Release has
// returned nil. If the authority grants this late request, the infinite lease stays locked until it
// is released again. For a finite lease, a second Release is not necessary, because the lease ends
// by itself.
func (s *Session) Release(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*machine).release)
}

// Settle releases the lease that an Acquire with an unknown outcome might have acquired. Unlike
// Release, Settle does not end a lease that the Session holds, and does not cancel a running call
// of Acquire. If the last Acquire of a program has an unknown outcome, the program should call
// Settle. Without Settle, the lease can stay locked while no program uses it. The functions [Run],
// [TryRun] and [AcquireWait] call Settle themselves. Settle uses ctx as Release does.
func (s *Session) Settle(ctx context.Context) error {
	return s.relinquish(ctx, "settle", (*machine).settle)
}

// HandOver gives the lease to another Session, the receiver. The parameter to is the [Session.ID] of
// the receiver. The authority replaces the ID of the sender with the ID of the receiver in one step,
// so no other holder can acquire the lease in between. If the lease has not ended when the receiver
// next calls Acquire, the authority grants that Acquire, with a newer token. Until the receiver's
// next Acquire, the lease stays locked, and its record still has the Owner of the sender. If the
// receiver crashes before its next Acquire, a finite lease stays locked until it expires. An infinite
// lease stays locked until it is broken.
//
// HandOver ends the sender's incarnation as Release does. The incarnation ends even if HandOver
// returns an error, because the receiver may already hold the lease. As soon as HandOver is called,
// CheckAlive returns false. The handlers of OnLost are not called. HandOver returns
//
//   - nil if the authority has given the lease to the receiver;
//   - the refusal if the authority refuses the hand-over, for example because the lease is breaking.
//     The Session then sends a release before HandOver returns.
//   - another error if the outcome is unknown. Call HandOver again with the same ID, or call Release.
//
// The context of each request ends after RequestTimeout. If a later Acquire of the sender is refused
// because the lease is still locked under the sender's old ID, the sender releases the lease under
// its old ID.
//
// The function of [Run] may call HandOver. After HandOver, the function should return, and Run
// returns the error of the function. But if [RunOptions].Again is set, Run first calls Again with
// the error of the function, even if the error is nil. If Again returns true, Run contends for the
// lease again.
//
// HandOver returns an error and changes nothing in four cases:
//
//   - ctx is already done;
//   - Close was called ([lease.ErrClosed]);
//   - the parameter to is zero, or is the ID of this Session ([lease.ErrProposed]);
//   - the lease is not held ([lease.ErrNotHeld]).
func (s *Session) HandOver(ctx context.Context, to lease.ID) error {
	needContext(ctx, "hand over")
	if err := ctx.Err(); err != nil {
		return s.opError("hand over", err)
	}
	return s.relinquish(ctx, "hand over", func(m *machine, now time.Time, n uint64) { m.handOver(now, n, to) })
}

// relinquish makes a call that may end the incarnation. If ctx is a context of WhileHeld, the call
// may end ctx too. Even if ctx ends in this way, relinquish waits for the answer.
func (s *Session) relinquish(ctx context.Context, op string, input input) error {
	needContext(ctx, op)
	over := ctx.Err() != nil
	await := s.call(ctx, input)
	if !over && context.Cause(ctx) == error(lease.ErrReleased) {
		ctx = context.WithoutCancel(ctx)
	}
	if o := await(ctx); o.err != nil {
		return s.opError(op, o.err)
	}
	return nil
}

// ID returns the ID to which another holder can hand the lease over, with [Session.HandOver]. While
// the lease is held, ID returns the ID in force. While the lease is not held, ID returns the ID
// that the next Acquire proposes. A call of ID affects Release: until the ID changes, Release also
// releases a lease that another holder has handed over to the returned ID. Do not call ID just to
// write a log record.
//
// The ID can change after a Release, a Settle, a HandOver or a loss, and after an Acquire that has
// returned an error. A lease that is handed over to an earlier ID stays locked. If an Acquire of a
// Session is refused because the lease is locked under an earlier ID of the same Session, the
// Session releases the lease. After Close, ID returns the zero ID, which HandOver does not accept.
func (s *Session) ID() (id lease.ID) {
	s.step(func(m *machine, now time.Time) { id = m.disclose(now) })
	return id
}

// Close releases the lease and waits until all requests and timers of the Session have ended. Once
// Close is called, no more handlers are started. Close does not wait for handlers that are running,
// so a handler may call Close. Once Close is called, Acquire and HandOver return [lease.ErrClosed].
// Close may be called more than once. Close returns
//
//   - nil if the lease is released, or if there was nothing to release;
//   - the error of the release, if the release has failed. The lease can then stay locked until it
//     expires.
//   - the error of ctx, if ctx ends while Close waits. The requests that are still running end by
//     themselves.
//
// Close does not report an earlier loss. It also waits for stuck requests: those whose method Do does
// not return after its context has ended, although [lease.Authority] requires that. Call Close with a
// context that has a deadline if your authority may do that. When Close has returned, nothing more is
// sent, unless ctx has ended first. Then each ID that may still be in force is released once more, when
// the requests before that have returned.
//
// In the clean-up function of a test, the context of the test is already done. In a program that
// stops, the context of the program is often done when its deferred functions run. If the context may
// be done, call Close with a new context.
//
// No client can undo a request that reaches the authority after Close. If a request acquires a
// finite lease after Close, the lease ends by itself. An infinite lease does not end by itself, so
// prefer a finite Duration.
func (s *Session) Close(ctx context.Context) error {
	s.onLost.Close()
	s.onBreak.Close()
	err := s.relinquish(ctx, "close", (*machine).close)
	if left := s.tasks.Close(ctx); left != nil && err == nil {
		err = s.opError("close", left)
	}
	s.log.Flush()
	return err
}
