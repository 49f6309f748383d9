package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// Wait returns nil when it may be worth to call Acquire: the lease is not locked, or is
// locked for this Session, or nothing better than asking is known. It takes nothing, and
// another may be faster.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease
// runs out; otherwise, and when a watch is lost, it looks again after an Interval, jittered.
func (s *Session) Wait(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var changed <-chan struct{}
	if w, ok := s.authority.(lease.Watcher); ok {
		if ch, err := w.Watch(watching, s.name); err == nil {
			changed = ch
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return s.opError("wait", err)
		}
		left, err := s.locked(ctx)
		if err != nil {
			if err := sleep(ctx, s.Clock, s.jitter(s.Retry)); err != nil {
				return s.opError("wait", err)
			}
			return nil
		}
		if left <= 0 {
			return nil
		}
		if changed == nil {
			left = min(left, s.jitter(s.Interval))
		}
		var timer <-chan time.Time
		if left != lease.Infinite {
			timer = s.Clock.After(left)
		}
		select {
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-timer:
		case <-ctx.Done():
		}
	}
}

// locked tells how long the lease stays locked for somebody else, at most.
func (s *Session) locked(ctx context.Context) (time.Duration, error) {
	ctx, cancel := withTimeout(ctx, s.Clock, s.Timeout)
	defer cancel()
	res, err := lease.Inspect(ctx, s.authority, s.name)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := res.Record
	switch {
	case s.closed, r.ID == s.proposal, s.owes(r.ID) != nil:
		return 0, nil
	case s.TakeOver && r.Owner == s.settings.Owner && r.State == lease.Leased:
		return 0, nil
	}
	return res.Remaining(), nil
}

func (s *Session) jitter(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shorten(d, 0.5)
}
