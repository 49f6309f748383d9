package session

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
)

// Wait blocks until it may be worth calling Acquire. Wait does not acquire the lease, so another
// holder may acquire it first. Wait returns nil in each of these cases:
//
//   - the lease is not locked;
//   - the lease is locked, but the Session may still acquire it, because the lease is locked under
//     an ID of the Session, or because TakeOver lets the Session take the lease over;
//   - Release or Close was called, or HandOver has ended the incarnation;
//   - the record could not be read, and about one RetryDelay has passed since the failed read.
//
// If ctx ends, Wait returns an error that matches the error of ctx, even if the authority does not
// answer. Wait returns no other error. The context of each read ends after RequestTimeout.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease expires.
// Without a watch, Wait reads the record repeatedly. After each read, Wait sleeps for at most one
// RenewInterval, shortened at random by up to half. After a watch is lost, Wait also reads the
// record repeatedly, until a new watch begins.
func (s *Session) Wait(ctx context.Context) error {
	return s.waitSpread(ctx, nil)
}

// waitSpread is like Wait. After the lease may have ended, waitSpread sleeps for the time that spread
// returns before it reads the record, so that many waiters do not all read it at the same time.
func (s *Session) waitSpread(ctx context.Context, spread func() time.Duration) error {
	_, err := s.wait(ctx, spread, func(lease.Result) bool { return false })
	if err == lease.ErrReleased {
		return nil
	}
	return err
}

// When a call of Wait is answered, the context of the call ends with the cause errAnswered.
var errAnswered = errors.New("the lease was given up")

// An ender ends the context of a call of Wait.
type ender context.CancelCauseFunc

func (end ender) answer(outcome) { end(errAnswered) }

// wait is like waitSpread, with two differences. If Release, HandOver or Close was called, wait returns
// ErrReleased. While the lease is locked and the Session cannot acquire it, wait passes each answer
// of the authority to the function isEnough, and returns true if isEnough returns true.
func (s *Session) wait(ctx context.Context, spread func() time.Duration, isEnough func(lease.Result) bool) (bool, error) {
	ctx, end := context.WithCancelCause(ctx)
	n := s.begin(replyTo{ctx, ender(end)}, (*machine).await)
	defer s.cancel(n, nil)
	f := s.follower()
	f.Spread = spread
	defer f.Unwatch()
	for ctx.Err() == nil {
		f.Watch(ctx)
		res, known := f.Look(ctx)
		s.mu.Lock()
		ours := s.machine.canAcquire(res.Record)
		s.mu.Unlock()
		left := res.MaxRemaining()
		switch {
		case ctx.Err() != nil:
			continue
		case !known:
			left = s.jitter(s.o.RetryDelay)
		case left <= 0 || ours:
			return false, nil
		case isEnough(res):
			return true, nil
		}
		if passed := f.Wait(ctx, left); passed && !known {
			return false, nil
		}
	}
	if context.Cause(ctx) == errAnswered {
		return false, lease.ErrReleased
	}
	return false, s.opError("wait", ctx.Err())
}

// watchHeld watches the record until ctx ends. watchHeld reads the record at the beginning and
// after each signal of the watch, and passes the record to the state machine. If the watch is lost,
// watchHeld waits for at most one RenewInterval, and then begins a new watch.
func (s *Session) watchHeld(ctx context.Context, id lease.ID) {
	f := s.follower()
	defer f.Unwatch()
	for ctx.Err() == nil {
		if f.Watch(ctx) {
			if res, known := f.Look(ctx); known {
				s.step(func(m *machine, now time.Time) { m.looked(now, id, res.Record) })
			}
		}
		f.Wait(ctx, lease.Infinite)
	}
}

// follower returns a reader of the record. The machine does not wait for reads and watches, and
// does not count them as stuck requests. A read or a watch that hangs therefore does not keep the
// Session from sending commands.
func (s *Session) follower() *follow.Follower {
	return &follow.Follower{
		Authority: s.authority, Name: s.Name(), Clock: s.o.Clock, Jitter: s.jitter,
		Timeout: s.o.RequestTimeout, Interval: s.o.RenewInterval, Retry: s.o.RetryDelay,
		Tasks: &s.tasks, Looks: &s.looks, Watches: &s.watches,
	}
}
