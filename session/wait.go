package session

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/holder"
)

// Wait blocks until it may be worth calling Acquire. Wait does not acquire the lease, so another holder may
// acquire it first. Wait returns nil if
//
//   - the lease is not locked;
//   - the lease is locked, but the Session may still acquire it, because it is locked under an ID of the
//     Session or can be taken over;
//   - Release or Close was called, or HandOver has ended the term;
//   - the record could not be read, and about one RetryDelay has passed since the failed read.
//
// If ctx ends, Wait returns an error that matches the error of ctx, even if the authority does not answer.
// Wait returns no other error. The context of each read ends after RequestTimeout.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease expires. Without a
// watch, Wait polls: it reads the record, and then sleeps for at most one RenewInterval, shortened at random
// by up to half. If a watch is lost, Wait polls until a new watch has begun.
func (s *Session) Wait(ctx context.Context) error {
	return s.waitSpread(ctx, nil)
}

// The method s.waitSpread is like Wait, with one difference: when the lease may have ended, the method first
// sleeps for the duration spread(). The sleep prevents many waiting Sessions from reading the record at the
// same time.
func (s *Session) waitSpread(ctx context.Context, spread func() time.Duration) error {
	_, err := s.wait(ctx, spread, func(lease.Result) bool { return false })
	if err == lease.ErrReleased {
		return nil
	}
	return err
}

// If Release, HandOver or Close is called during a Wait, the context of the Wait ends with the cause
// errAnswered.
var errAnswered = errors.New("the lease was given up")

type ender context.CancelCauseFunc

func (end ender) answer(holder.Outcome) { end(errAnswered) }

// wait is like waitSpread, but returns ErrReleased if Release, HandOver or Close was called. It returns true
// if the lease is locked, the Session cannot acquire it, and isEnough returns true for the record.
func (s *Session) wait(ctx context.Context, spread func() time.Duration, isEnough func(lease.Result) bool) (bool, error) {
	ctx, end := context.WithCancelCause(ctx)
	n := s.begin(pendingCall{ctx: ctx, caller: ender(end)}, (*holder.Machine).Await)
	defer s.cancel(n, nil)
	f := s.follower()
	f.Spread = spread
	defer f.Unwatch()
	for ctx.Err() == nil {
		f.Watch(ctx)
		res, known := f.Read(ctx)
		s.mu.Lock()
		ours := s.machine.CanAcquire(res.Record)
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

// watchHeld watches the record until ctx ends. At the beginning and after each signal, watchHeld reads the
// record and passes it to the state machine. If a read fails, watchHeld reads again after about one
// RetryDelay. If the watch is lost, watchHeld begins a new one after at most one RenewInterval.
func (s *Session) watchHeld(ctx context.Context, id lease.ID) {
	f := s.follower()
	defer f.Unwatch()
	for ctx.Err() == nil {
		pause := lease.Infinite
		if f.Watch(ctx) {
			if res, known := f.Read(ctx); known {
				s.step(func(m *holder.Machine, now time.Time) { m.Read(now, id, res.Record) })
			} else if f.Err != follow.ErrNoTime {
				pause = s.jitter(s.o.RetryDelay)
			}
		}
		f.Wait(ctx, pause)
	}
}

// follower returns a reader of the record. The state machine does not count its reads and watches among the
// requests that have not returned, so a read that hangs does not prevent the Session from sending other
// requests.
func (s *Session) follower() *follow.Follower {
	return &follow.Follower{
		Authority: s.authority, Name: s.Name(), Clock: s.o.Clock, Jitter: s.jitter,
		Timeout: s.o.RequestTimeout, Interval: s.o.RenewInterval, Retry: s.o.RetryDelay,
		Tasks: &s.tasks, Reads: &s.reads, Watches: &s.watches,
	}
}
