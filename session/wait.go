package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// Wait returns nil when it may be worth to call Acquire: the lease is not locked, or is
// locked for this Session, or Release or Close was called, or nothing better than asking is
// known. It takes nothing, and another may be faster.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease
// runs out; otherwise, and when a watch is lost, it looks again after an Interval, jittered.
func (s *Session) Wait(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	s.lock()
	superseded := s.supersession()
	s.unlock()
	changed := s.watch(watching)
	for {
		if err := ctx.Err(); err != nil {
			return s.opError("wait", err)
		}
		left, known := s.locked(ctx)
		if !known {
			if err := sleep(ctx, s.o.Clock, s.jitter(s.o.Retry)); err != nil {
				return s.opError("wait", err)
			}
			return nil
		}
		if left <= 0 {
			return nil
		}
		if changed == nil {
			left = min(left, s.jitter(s.o.Interval))
		}
		select {
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-s.o.Clock.After(left):
			if changed == nil {
				changed = s.watch(watching)
			}
		case <-superseded:
			return nil
		case <-ctx.Done():
		}
	}
}

// watch returns nil if there is nothing to watch with.
func (s *Session) watch(ctx context.Context) <-chan struct{} {
	if w, ok := s.authority.(lease.Watcher); ok {
		if changed, err := w.Watch(ctx, s.name); err == nil {
			return changed
		}
	}
	return nil
}

// locked tells how long the lease stays locked for somebody else, at most, if the authority
// answers. It waits no longer than a request may take.
func (s *Session) locked(ctx context.Context) (left time.Duration, known bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, true
	}
	s.begin()
	s.mu.Unlock()
	ctx, cancel := withTimeout(ctx, s.o.Clock, s.o.Timeout)
	defer cancel()
	results := make(chan lease.Result, 1)
	go func() {
		defer s.finish()
		defer close(results)
		if res, err := lease.Inspect(ctx, s.authority, s.name); err == nil {
			results <- res
		}
	}()
	var res lease.Result
	select {
	case res, known = <-results:
	case <-ctx.Done(): // also for an authority that does not keep to it
	}
	if !known {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := res.Record
	switch {
	case !r.ID.IsZero() && (r.ID == s.proposal || s.owes(r.ID) != nil):
		return 0, true
	case s.o.TakeOver && r.Owner == s.o.Owner && r.State == lease.Leased:
		return 0, true
	}
	return res.Remaining(), true
}
