package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// Wait returns nil when it may be worth to call Acquire: the lease is not locked, or is
// locked for this Session, or Release or Close was called, or nothing better than asking is
// known. It takes nothing, and another may be faster. It ends with its context, and at a
// Release or Close, whatever the authority does.
//
// If the authority is a [lease.Watcher], Wait sleeps until the record changes or the lease
// runs out; otherwise, and when a watch is lost, it looks again after an Interval, jittered.
func (s *Session) Wait(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	s.lock()
	superseded, closed := s.supersession(), s.closed
	s.unlock()
	if closed {
		return nil
	}
	changed := s.watch(watching, superseded)
	for {
		if err := ctx.Err(); err != nil {
			return s.opError("wait", err)
		}
		left, known := s.locked(ctx, superseded)
		switch {
		case !known:
			left = s.jitter(s.o.Retry)
		case left <= 0:
			return nil
		case changed == nil:
			left = min(left, s.jitter(s.o.Interval))
		}
		select {
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-s.o.Clock.After(left):
			if !known {
				return nil
			}
			if changed == nil {
				changed = s.watch(watching, superseded)
			}
		case <-superseded:
			return nil
		case <-ctx.Done():
		}
	}
}

// watch returns nil if there is nothing to watch with.
func (s *Session) watch(ctx context.Context, superseded <-chan struct{}) (changed <-chan struct{}) {
	w, ok := s.authority.(lease.Watcher)
	if !ok {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		if changed == nil {
			stop()
		}
	}()
	changed, _ = ask(ctx, s, superseded, func(context.Context) (<-chan struct{}, error) { return w.Watch(ctx, s.name) })
	return changed
}

// locked tells how long the lease stays locked for somebody else, at most, if the authority
// answers.
func (s *Session) locked(ctx context.Context, superseded <-chan struct{}) (left time.Duration, known bool) {
	res, known := ask(ctx, s, superseded, func(ctx context.Context) (lease.Result, error) {
		return lease.Inspect(ctx, s.authority, s.name)
	})
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

// ask returns what f answers, if that is no error and comes within the time of a request, and
// before ctx ends and superseded is closed. It waits no longer, though f may not keep to its
// context. A Session that is closed asks nothing.
func ask[T any](ctx context.Context, s *Session, superseded <-chan struct{}, f func(context.Context) (T, error)) (answer T, known bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return answer, false
	}
	s.begin()
	s.mu.Unlock()
	ctx, cancel := withTimeout(ctx, s.o.Clock, s.o.Timeout)
	defer cancel()
	answers := make(chan T, 1)
	go func() {
		defer s.finish()
		defer close(answers)
		if answer, err := f(ctx); err == nil {
			answers <- answer
		}
	}()
	select {
	case answer, known = <-answers:
	case <-superseded:
	case <-ctx.Done():
	}
	return answer, known
}
