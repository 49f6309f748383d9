package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
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

// TryAcquire is an Acquire that returns false only if the lease is certainly held by somebody:
// where the authority has a clock, as soon as it is refused. An authority without a clock, such as
// that of etcdlease, does not know how old a record is that it sees for the first time. There
// TryAcquire waits: it returns false once it has seen the record renewed, and takes a record that
// runs out meanwhile, because its holder is dead.
func (s *Session) TryAcquire(ctx context.Context) (lease.Token, bool, error) {
	for {
		o := s.acquire(ctx)
		if o.err != errPerhapsFree {
			return s.acquired(o)
		}
		certain := func(res lease.Result) bool { return res.MinRemaining > 0 }
		locked, err := s.wait(ctx, certain)
		switch {
		case err == error(lease.ErrReleased): // as an Acquire under way
			return s.acquired(outcome{err: err})
		case locked || err != nil:
			return "", false, err
		}
	}
}

// wait waits as Wait does, but returns ErrReleased if Release or Close was called. It returns true as
// soon as a look at a locked record satisfies enough.
func (s *Session) wait(caller context.Context, enough func(lease.Result) bool) (bool, error) {
	ctx, cancel := context.WithCancel(caller) // ends with the call, too
	w := &waiter{ctx: ctx, ended: cancel}
	s.begin(w, (*machine).await)
	defer s.cancel(w, nil)
	changed, stop := s.watch(ctx)
	defer func() { stop() }()
	var (
		last     lease.Record
		soonest  time.Duration // for an authority that always answers that the lease is about to end
		signaled bool
	)
	for ctx.Err() == nil {
		res, known := s.look(ctx)
		left := s.lockedFor(res)
		switch {
		case ctx.Err() != nil:
			continue
		case !known:
			left = s.jitter(s.o.RetryDelay)
		case left <= 0:
			return false, nil
		case enough(res):
			return true, nil
		case changed == nil:
			left = min(left, s.jitter(s.o.RenewInterval))
		}
		if signaled && (!known || res.Record == last) { // some authorities signal what changes nothing
			pause := min(left, s.jitter(s.o.RenewInterval/10))
			left -= pause
			_ = sleep(ctx, s.o.Clock, pause)
		}
		last = res.Record
		if left >= s.o.RetryDelay {
			soonest = 0
		}
		select {
		case _, signaled = <-changed:
			if !signaled {
				stop()
				changed = nil
			}
		case <-s.o.Clock.After(max(left, soonest)):
			if !known {
				return false, nil
			}
			soonest, signaled = min(max(2*soonest, time.Millisecond), s.o.RetryDelay), false
			if changed == nil {
				changed, stop = s.watch(ctx)
			}
		case <-ctx.Done():
		}
	}
	if w.over() {
		return false, lease.ErrReleased
	}
	return false, s.opError("wait", caller.Err())
}

// lockedFor is how long the lease stays locked, at most, for all but this Session.
func (s *Session) lockedFor(res lease.Result) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine.takes(res.Record) {
		return 0
	}
	return res.MaxRemaining()
}
