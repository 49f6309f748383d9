package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// A caller is a method call that waits for its outcome.
type caller struct {
	ctx    context.Context
	answer func(outcome) // is called once, and must not block
}

// An input passes the call with number n to the machine.
type input func(m *machine, now time.Time, n uint64)

// needContext panics if ctx is nil. A method calls it before it changes anything.
func needContext(ctx context.Context, call string) {
	if ctx == nil {
		panic("session: the context of " + call + " is nil")
	}
}

// begin registers a call, passes it to the machine, and returns the number of the call.
func (s *Session) begin(c caller, input input) (n uint64) {
	s.step(func(m *machine, now time.Time) {
		n = s.calls.Put(c)
		input(m, now, n)
	})
	return n
}

// cancel answers a call with an error if the call has no answer yet.
func (s *Session) cancel(n uint64, err error) {
	s.step(func(m *machine, now time.Time) { m.cancel(now, n, err) })
}

// call begins a call. The returned function waits for the answer. If its context ends first, it
// cancels the call.
func (s *Session) call(ctx context.Context, input input) (await func(context.Context) outcome) {
	answers := make(chan outcome, 1)
	n := s.begin(caller{ctx, func(o outcome) { answers <- o }}, input)
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

// Acquire tries once to acquire the lease, as [lease.Lease] describes.
func (s *Session) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := s.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is like Acquire, and also returns the fencing token of the held incarnation.
//
// Concurrent calls are served one after the other. A call returns at once if its context ends, or if
// Release, HandOver or Close is called. If the authority grants the request of a call that has
// already returned, the Session releases the lease again, before it serves the next call.
//
// If the authority does not answer a release, the next Release or Close sends the release again. An
// Acquire also sends the release again if the Acquire is refused because the lease is still locked. A
// finite lease also ends by itself.
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

// acquired converts the outcome of an Acquire into the results of the method.
func (s *Session) acquired(o outcome) (lease.Token, bool, error) {
	switch o.err {
	case nil:
		return o.token, true, nil
	case errNotGranted, errPerhapsFree:
		return "", false, nil
	}
	return "", false, s.opError("acquire", o.err)
}

// Release gives the lease up, as [lease.Lease] describes. Release also releases the lease if an
// earlier call with an unknown outcome may have acquired it. If another holder may have handed the
// lease over to the ID that [Session.ID] has returned, Release also releases that lease.
//
// Release sends its request even if ctx is done. If ctx ends while Release waits for the answer,
// Release returns the error of ctx. If the answer arrives just when ctx ends, Release may return the
// answer instead of the error. If ctx is a context of [Session.WhileHeld], Release itself ends ctx,
// and still waits for the answer. If an Acquire is still running, Release ends it, and waits until
// the lease that it may have acquired is released.
//
// Take care with an infinite lease. An Acquire with an unknown outcome may reach the authority after
// Release has returned nil. If such an Acquire is granted, the lease stays locked. Call Release again
// later, or use a finite Duration, because a finite lease ends by itself.
func (s *Session) Release(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*machine).release)
}

// Settle releases the lease in case an Acquire with an unknown outcome was granted. Unlike Release,
// Settle does not end the lease that is held or the Acquires of other calls. If the last Acquire of a
// program has an unknown outcome, the program should call Settle. Without Settle, the lease may stay
// locked although nobody uses it. [Run], [TryRun] and [AcquireWait] call Settle themselves.
func (s *Session) Settle(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*machine).settle)
}

// HandOver gives the lease to another Session, the receiver. The parameter to is the [Session.ID] of
// the receiver. The authority replaces the ID of the sender by the ID of the receiver in one step, so
// no other holder can acquire the lease in between. The receiver's next Acquire is granted, with a
// newer token. Until the receiver's next Acquire, the lease stays locked under the label of the old
// owner. If the receiver crashes before its next Acquire, a finite lease stays locked until it
// expires. An infinite lease stays locked until it is broken.
//
// HandOver ends the incarnation as Release does. HandOver ends the incarnation even if it returns an
// error, because the receiver may already hold the lease. From the call on, CheckAlive returns false.
// The handlers of OnLost are not called.
//
// If the authority refuses the hand-over, for example because the lease is breaking, the Session
// releases the lease. After any other error of HandOver, call HandOver again with the same ID, or
// call Release. If an Acquire is refused because the lease is still locked under the old ID, that
// Acquire also releases the old ID.
//
// HandOver returns an error and changes nothing in three cases:
//
//   - ctx is already done;
//   - the parameter to is zero, or is the ID of this Session;
//   - the lease is not held ([lease.ErrNotHeld]).
func (s *Session) HandOver(ctx context.Context, to lease.ID) error {
	needContext(ctx, "hand over")
	if err := ctx.Err(); err != nil {
		return s.opError("hand over", err)
	}
	return s.relinquish(ctx, "hand over", func(m *machine, now time.Time, n uint64) { m.handOver(now, n, to) })
}

// relinquish makes a call that may end the incarnation. This may also end ctx, if ctx is a context
// of WhileHeld. In that case, relinquish still waits for the answer.
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
// the lease is held, this is the ID in force. Otherwise it is the ID that the next Acquire proposes.
// ID is more than a getter. Once ID has returned an ID, Release also releases a lease that another
// holder has handed over to this ID.
//
// The ID changes after a release, after a loss, and after an Acquire that has returned before its
// answer came. A lease that is handed over to an earlier ID stays locked. The Session releases such a
// lease when the authority refuses an Acquire because of the earlier ID. After Close, ID returns the
// zero ID, which HandOver does not accept.
func (s *Session) ID() (id lease.ID) {
	s.step(func(m *machine, now time.Time) { id = m.disclose(now) })
	return id
}

// Close releases the lease and waits until all requests and timers of the Session have ended. Once
// Close is called, no handler is started any more. Close does not wait for handlers that are
// running, so a handler may call Close. Once Close is called, Acquire returns [lease.ErrClosed].
//
// Close returns the error of the release. If ctx ends first, Close returns the error of ctx, and the
// remaining requests end by themselves. Close also waits for stuck requests, which may never end. So
// call Close with a context that ends. Close may be called again.
//
// In the clean-up function of a test, the context of the test is already done. In a program that
// stops, the context of the program is often done when its deferred functions run. In both cases,
// call Close with a new context.
//
// No client can undo a request that reaches the authority after Close. If a request acquires a
// finite lease after Close, the lease ends by itself. An infinite lease does not, so prefer a finite
// Duration.
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
