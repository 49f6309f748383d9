package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// A caller is what a call of a method left with the Session.
type caller struct {
	ctx    context.Context
	answer func(outcome) // is called once, and must not wait
}

// An input gives the machine call number n.
type input func(m *machine, now time.Time, n uint64)

// needContext panics if a call was given a nil context, before that has changed anything.
func needContext(ctx context.Context, call string) {
	if ctx == nil {
		panic("session: the context of " + call + " is nil")
	}
}

// begin gives the machine a call, and returns its number.
func (s *Session) begin(c caller, input input) (n uint64) {
	s.step(func(m *machine, now time.Time) {
		n = s.calls.Put(c)
		input(m, now, n)
	})
	return n
}

// cancel answers a call with an error, unless it was answered.
func (s *Session) cancel(n uint64, err error) {
	s.step(func(m *machine, now time.Time) { m.cancel(now, n, err) })
}

// call begins a call. The function that it returns waits until the call is answered; the end of its
// context answers it.
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

// Acquire tries once to take the lease, as [lease.Lease] says.
func (s *Session) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := s.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is Acquire and returns the fencing token of the incarnation that is held.
//
// Calls take turns, also with the release of an earlier one that was abandoned. A call that is
// abandoned by its context or superseded by Release returns at once; if the authority grants it
// all the same, the lease is released as soon as that is known. If it cannot be released because
// the authority does not answer, the next Acquire that finds it in force, Release or Close does
// so; a finite lease also ends by itself.
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

// acquired returns the outcome of an Acquire as its caller gets it.
func (s *Session) acquired(o outcome) (lease.Token, bool, error) {
	switch o.err {
	case nil:
		return o.token, true, nil
	case errNotGranted, errPerhapsFree:
		return "", false, nil
	}
	return "", false, s.opError("acquire", o.err)
}

// Release gives the lease up, as [lease.Lease] says, together with whatever an earlier call
// left in doubt, and with what may have been handed over to the [Session.ID] that was disclosed.
// The request is sent even if ctx is done. The end of ctx ends the wait for the answer only, and
// not even that if Release itself ends ctx because it belonged to the incarnation
// ([Session.WhileHeld]). If the answer is there when ctx ends, Release may return either. It waits for
// an Acquire that it supersedes to be undone.
//
// An infinite lease needs care: an Acquire of unknown outcome may still be on its way when
// Release returns nil. What it is granted then is an orphan. Call Release again later, or use a
// finite Duration, which ends such a lease by itself.
func (s *Session) Release(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*machine).release)
}

// Settle releases what an Acquire of unknown outcome may have been granted. Unlike Release it
// leaves alone the lease that is held and the Acquires of other calls. A program that stops
// contending after such an Acquire calls it, so that no orphan keeps the lease locked;
// [Run] and [AcquireWait] do.
func (s *Session) Settle(ctx context.Context) error {
	return s.relinquish(ctx, "release", (*machine).settle)
}

// HandOver gives the lease to another Session, whose [Session.ID] is to: the authority
// changes the ID in force, so that no other holder can come between, and the receiver's next Acquire
// is granted with a newer token. Until then the lease stays locked under the old owner's label.
// If the receiver goes away without a Release or Close, it stays locked for what was left of it;
// an infinite lease, until it is broken.
//
// HandOver ends the incarnation as Release does, even if it returns an error, since the receiver
// may hold from the moment the authority has carried it out: CheckAlive is false from the call
// on, and OnLost is not called. If the authority refuses, which it does to a lease that is
// breaking, the lease is released. After any other error call HandOver again with the same ID,
// or Release; an Acquire that finds the ID still in force releases it too.
//
// Three mistakes end nothing: a context that is done already, an ID that cannot be given to, and
// a lease that is not held ([lease.ErrNotHeld]).
func (s *Session) HandOver(ctx context.Context, to lease.ID) error {
	needContext(ctx, "hand over")
	if err := ctx.Err(); err != nil {
		return s.opError("hand over", err)
	}
	return s.relinquish(ctx, "hand over", func(m *machine, now time.Time, n uint64) { m.handOver(now, n, to) })
}

// relinquish makes a call that may end the incarnation, and with it the call's own context: that
// does not end the wait.
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

// ID returns the ID that is in force while the lease is held, and otherwise the one that the
// next Acquire proposes: what another holder needs to know to hand the lease over to this
// Session. ID is a request to be given the lease, and not only a getter: from then on Release
// also releases what may have been handed over to the ID.
//
// The ID changes when it is retired: after a release, a loss, or an Acquire that was abandoned.
// A lease that is handed over to a retired ID is an orphan; the next Acquire of this Session
// that finds it in force releases it. A Session that is closed has no ID: it returns the zero ID,
// which no hand-over accepts.
func (s *Session) ID() (id lease.ID) {
	s.step(func(m *machine, now time.Time) { id = m.disclose(now) })
	return id
}

// Close releases the lease and waits until no request and no timer is left. It begins no handler
// any more, and does not wait for handlers that have begun, so it may be called anywhere, also in
// a handler. From then on Acquire fails with [lease.ErrClosed].
//
// Close returns the error of the release, or the context's if that ends first; what is left then
// still ends by itself. It waits even for a request that was given up because the authority does
// not return, so give it a context that ends. Close may be called again.
//
// The context of a test is done when its clean-ups run: there, as in a defer of a program that
// is told to stop, give Close a context of its own.
//
// No client can undo a request that reaches the authority after Close. What such a request
// acquires ends by itself; an infinite lease does not, so prefer a finite Duration.
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
