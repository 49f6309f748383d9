package session

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
)

// Wait returns nil when it may be worth calling Acquire: the lease is not locked, or this Session
// may acquire it although it is, or Release or Close was called, or nothing better than asking is
// known. It takes nothing, and another may be faster. It ends with its context, and at a Release
// or Close, whatever the authority does.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease
// runs out; otherwise, and when a watch is lost, it looks again after a RenewInterval, jittered.
func (s *Session) Wait(ctx context.Context) error {
	_, err := s.wait(ctx, func(lease.Result) bool { return false })
	if err == error(lease.ErrReleased) {
		return nil
	}
	return err
}

// errAnswered ends the context of a Wait that the machine has answered.
var errAnswered = errors.New("the lease was given up")

// wait waits as Wait does, but returns ErrReleased if Release or Close was called. It returns true as
// soon as a look at a locked record satisfies enough.
func (s *Session) wait(ctx context.Context, enough func(lease.Result) bool) (bool, error) {
	ctx, end := context.WithCancelCause(ctx)
	n := s.begin(caller{ctx, func(outcome) { end(errAnswered) }}, (*machine).await)
	defer s.cancel(n, nil)
	f := s.follower()
	defer f.Unwatch()
	for ctx.Err() == nil {
		f.Watch(ctx)
		res, known := f.Look(ctx)
		s.mu.Lock()
		ours := s.machine.takes(res.Record)
		s.mu.Unlock()
		left := res.MaxRemaining()
		switch {
		case ctx.Err() != nil:
			continue
		case !known:
			left = s.jitter(s.o.RetryDelay)
		case left <= 0 || ours:
			return false, nil
		case enough(res):
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

// watchHeld reads the record at once and at every signal of a watch, until ctx ends, and gives the
// machine what it reads. A watch that is lost is begun again after a RenewInterval.
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

// follower returns a reader of the record. Its requests are not commands: a look or a watch that
// hangs keeps no request from being sent.
func (s *Session) follower() *follow.Follower {
	return &follow.Follower{
		Authority: s.authority, Name: s.Name(), Clock: s.o.Clock, Jitter: s.jitter,
		Timeout: s.o.RequestTimeout, Interval: s.o.RenewInterval, Retry: s.o.RetryDelay,
		Tasks: &s.tasks, Looks: &s.looks, Watches: &s.watches,
	}
}
