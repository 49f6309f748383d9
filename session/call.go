package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/holder"
)

func needContext(ctx context.Context, call string) {
	if ctx == nil {
		panic("session: " + call + ": the context must not be nil")
	}
}

// Acquire tries once to acquire the lease, and does not wait until it is free. It returns
//
//   - (true, nil) if the Session holds the lease now;
//   - (false, nil) if the lease was certainly not granted, because it is locked;
//   - (false, err) in every other case, for example if ctx has ended, if Release or Close was called, or if
//     the outcome is unknown. Such a call never makes the Session hold the lease, even if the authority has
//     granted it. Unless another Acquire follows, call ReleaseUncertain, so that the lease does not stay
//     locked.
//
// If the Session already holds the lease, Acquire sends no request and returns true, even if another
// goroutine has acquired it, and even after the stop window has begun. Call Release first to begin a new
// term.
//
// Acquire usually sends one request. If the Session still has to release an earlier lease ID, it sends that
// release first. A take-over ([Options.TakeOver]) needs two more requests. The context of each request ends
// after RequestTimeout. [lease.Lease] describes Acquire over a store without a clock.
func (s *Session) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := s.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is like [Session.Acquire], but also returns the fencing token of the lease, which is empty
// unless AcquireWithToken returns true.
//
// Concurrent calls are served one after the other. If ctx ends, a call returns the error of ctx at once. If
// Release or Close is called, an Acquire that is still running returns [lease.ErrReleased] at once. If the
// authority grants the lease to a call that has already returned, the Session releases the lease before it
// serves the next call.
//
// If the authority did not answer a release, the Session sends the release again at the next call of Release
// or Close, or when an Acquire is refused because the lease is still locked. A finite lease ends even without
// a release.
func (s *Session) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	return s.acquired(s.acquire(ctx))
}

func (s *Session) acquire(ctx context.Context) holder.Outcome {
	needContext(ctx, "acquire")
	if b, held := s.current(); held {
		return holder.Outcome{Token: b.Token}
	}
	if err := ctx.Err(); err != nil {
		return holder.Outcome{Err: err}
	}
	return s.call(ctx, (*holder.Machine).Acquire).await(ctx)
}

func (s *Session) acquired(o holder.Outcome) (lease.Token, bool, error) {
	switch o.Err {
	case nil:
		return o.Token, true, nil
	case holder.ErrNotGranted, holder.ErrPerhapsFree:
		return "", false, nil
	}
	return "", false, s.opError("acquire", o.Err)
}

// AcquireUnlessHeld is like [Session.AcquireWithToken], but it returns (false, nil) only if another holder is
// certainly alive. If the authority has a clock, AcquireUnlessHeld sends one Acquire and returns.
//
// An authority without a clock, such as that of etcdlease, cannot know the age of a record that it reads for
// the first time. AcquireUnlessHeld then waits for at most the duration of the lease in that record. If the
// holder renews the lease in this time, AcquireUnlessHeld returns false. If the lease expires without a
// renewal, the holder is dead, and AcquireUnlessHeld acquires the lease. If ctx ends while AcquireUnlessHeld
// waits, it returns the error of ctx.
func (s *Session) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	for {
		o := s.acquire(ctx)
		if o.Err != holder.ErrPerhapsFree {
			return s.acquired(o)
		}
		isHeld := func(res lease.Result) bool { return res.MinRemaining > 0 }
		locked, err := s.wait(ctx, nil, isHeld)
		switch {
		case err == error(lease.ErrReleased): // treat it like an Acquire that is in flight
			return s.acquired(holder.Outcome{Err: err})
		case locked || err != nil:
			return "", false, err
		}
	}
}

// Release ends the term and releases the lease. As soon as Release is called, CheckAlive returns false.
// Release returns
//
//   - nil if the lease is released, or if there was nothing to release;
//   - the [*lease.LostError] of a loss, if it is the first Release since the loss and no Acquire came in
//     between. In this way a program that acquires, works and releases learns that it lost its lease;
//   - an error if ctx has ended or a request has failed. The lease can then stay locked until it expires. To
//     release the lease earlier, call Release again.
//
// Release also ends an Acquire that is still running. If that Acquire, or an earlier call with an unknown
// outcome, may have acquired the lease, Release releases the lease and waits for the answer. Release also
// releases a lease that another holder may have handed over to the ID that [Session.ID] has returned. Release
// does not call the handlers of OnLost.
//
// Release sends its request even if ctx is done. If ctx ends while Release waits for the answer, it returns
// the error of ctx. The exception is a context of [Session.WhileHeld]: Release itself ends that context, and
// still waits for the answer. The context of each request ends after RequestTimeout.
//
// If an Acquire of an infinite lease had an unknown outcome, call Release twice, the second time after a
// while. The delayed request of the Acquire can reach the authority after the first Release, and the infinite
// lease that it acquires then stays locked until it is released again. A finite lease ends by itself.
func (s *Session) Release(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*holder.Machine).Release)
}

// ReleaseUncertain releases the lease if it was acquired by an Acquire whose outcome is unknown. Unlike
// Release, ReleaseUncertain neither ends a lease that the Session holds nor cancels a running Acquire. If an
// Acquire has an unknown outcome and no other Acquire follows, call ReleaseUncertain, because otherwise the
// lease can stay locked although no program uses it. [Run], [TryRun] and [AcquireWait] call ReleaseUncertain
// themselves. ReleaseUncertain treats ctx in the same way as [Session.Release]. For example, ReleaseUncertain
// sends its request even if ctx is done.
func (s *Session) ReleaseUncertain(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*holder.Machine).ReleaseUncertain)
}

// HandOver gives the lease to another Session, the receiver. The parameter to is the [Session.ID] of the
// receiver. The authority replaces the ID of the sender with that of the receiver in one step, so no other
// holder can acquire the lease in between. When the receiver next calls Acquire, the authority grants the
// lease with a newer token, unless the lease has ended before that call. Until the receiver calls Acquire,
// the lease stays locked, and its record has the Owner of the sender. If the receiver crashes before it calls
// Acquire, a finite lease stays locked until it expires, and an infinite one until it is broken.
//
// HandOver ends the sender's term as Release does, even if HandOver returns an error, because the receiver
// may already hold the lease. The handlers of OnLost are not called. HandOver returns
//
//   - nil if the authority has given the lease to the receiver;
//   - the refusal if the authority refuses the hand-over, for example because the lease is breaking. After a
//     refusal, the Session sends a release before HandOver returns.
//   - another error if the outcome is unknown. Call HandOver again with the same ID, or call Release.
//
// The context of each request ends after RequestTimeout. The function that was passed to [Run] may call
// HandOver, and should return after that. Run then returns the error of the function, unless
// [RunOptions.Again] makes Run contend again.
//
// HandOver returns an error and changes nothing if
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
	return s.relinquish(ctx, "hand over", func(m *holder.Machine, n uint64) { m.HandOver(n, to) })
}

// The methods Release, ReleaseUncertain, HandOver and Close call relinquish. Such a call can itself end the
// contexts of WhileHeld. Even if ctx is one of these contexts, relinquish waits for the answer.
func (s *Session) relinquish(ctx context.Context, op string, input input) error {
	needContext(ctx, op)
	over := ctx.Err() != nil
	c := s.call(ctx, input)
	if !over && context.Cause(ctx) == error(lease.ErrReleased) {
		ctx = context.WithoutCancel(ctx)
	}
	if o := c.await(ctx); o.Err != nil {
		return s.opError(op, o.Err)
	}
	return nil
}

// ID returns the ID to which another holder can hand the lease over, with [Session.HandOver]. While the
// Session holds the lease, the result is the ID of the lease, and otherwise the ID that the next Acquire
// proposes. Do not call ID just to write a log record, because another holder may hand its lease over to the
// returned ID. Until the ID changes, Release must therefore also release any lease that was handed over to
// this ID.
//
// The ID can change after a Release, a ReleaseUncertain, a HandOver or a loss, and after an Acquire that has
// returned an error. Another holder may then hand its lease over to an ID that this Session no longer uses.
// In this case, the lease stays locked until it expires, or until an Acquire of this Session is refused and
// the answer shows that earlier ID. After such an answer, the Session releases the lease. After Close, ID
// returns the zero ID, which HandOver does not accept.
func (s *Session) ID() (id lease.ID) {
	s.step(func(m *holder.Machine, _ time.Time) { id = m.Disclose() })
	return id
}

// Close releases the lease and waits until all requests and timers of the Session have ended. Once Close is
// called, the Session starts no more handlers, and Acquire and HandOver return [lease.ErrClosed]. Close does
// not wait for running handlers, so a handler may call Close. Close may be called more than once, and does
// not report an earlier loss. It returns
//
//   - nil if the lease is released, or if there was nothing to release;
//   - the error of the release, if the release has failed. The lease can then stay locked until it expires.
//   - the error of ctx, if ctx ends while Close waits. The running requests end by themselves, and the
//     Session then once more releases every ID under which they may have acquired the lease.
//
// When a program stops, or a clean-up function of a test runs, the usual context is often already done, so
// call Close with a new context. Close waits for every request of the Session. If a request to your authority
// can hang even after the context of the request has ended, give the new context a deadline, because
// otherwise Close can hang, too.
//
// A request that reaches the authority after Close cannot be undone. If such a request acquires an infinite
// lease, the lease does not end by itself, so prefer a finite Duration.
func (s *Session) Close(ctx context.Context) error {
	s.onLost.Close()
	s.onBreak.Close()
	err := s.relinquish(ctx, "close", (*holder.Machine).Close)
	if left := s.tasks.Close(ctx); left != nil && err == nil {
		err = s.opError("close", left)
	}
	s.log.Flush()
	return err
}
