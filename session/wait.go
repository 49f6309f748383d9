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
// runs out; otherwise, and when a watch is lost, it looks again after a RenewInterval, jittered.
// After a signal that no change is seen to be behind it pauses before it follows another, for a
// tenth of a RenewInterval at most.
func (s *Session) Wait(ctx context.Context) error {
	s.lock()
	closed, superseded := s.closed, s.supersession()
	s.unlock()
	defer s.heed(superseded)
	if closed {
		return nil
	}
	changed, stop := s.watch(ctx, superseded)
	defer func() { stop() }()
	var last lease.Record
	for signalled := false; ; {
		if err := ctx.Err(); err != nil {
			return s.opError("wait", err)
		}
		seen, left, known := s.locked(ctx, superseded)
		needless := signalled && (!known || seen == last)
		if known {
			last = seen
		}
		switch {
		case !known:
			left = s.jitter(s.o.RetryDelay)
		case left <= 0:
			return nil
		case changed == nil:
			left = min(left, s.jitter(s.o.RenewInterval))
		}
		if needless { // some authorities signal what only looks
			pause := min(left, s.jitter(s.o.RenewInterval/10))
			left -= pause
			select {
			case <-s.o.Clock.After(pause):
			case <-superseded:
				return nil
			case <-ctx.Done():
			}
		}
		select {
		case _, signalled = <-changed:
			if !signalled {
				stop()
				changed = nil
			}
		case <-s.o.Clock.After(left):
			if !known {
				return nil
			}
			if changed == nil {
				changed, stop = s.watch(ctx, superseded)
			}
		case <-superseded:
			return nil
		case <-ctx.Done():
		}
	}
}

// watch begins a watch, and returns nil if there is nothing to watch with. What it needs is
// freed by stop, also once the watch is lost.
func (s *Session) watch(ctx context.Context, superseded <-chan struct{}) (changed <-chan struct{}, stop func()) {
	w, ok := s.authority.(lease.Watcher)
	if !ok {
		return nil, func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	changed, _ = ask(ctx, s, superseded, func(context.Context) (<-chan struct{}, error) { return w.Watch(ctx, s.name) })
	if changed == nil {
		stop()
	}
	return changed, stop
}

// locked tells how long the lease stays locked for somebody else, at most, and the record that
// says so, if the authority answers.
func (s *Session) locked(ctx context.Context, superseded <-chan struct{}) (r lease.Record, left time.Duration, known bool) {
	res, known := ask(ctx, s, superseded, func(ctx context.Context) (lease.Result, error) {
		return lease.Inspect(ctx, s.authority, s.name)
	})
	if !known {
		return r, 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r = res.Record
	switch {
	case !r.ID.IsZero() && (r.ID == s.proposal || s.owes(r.ID) != nil):
		return r, 0, true
	case s.o.TakeOver && r.Owner == s.o.Owner && r.State == lease.Leased:
		return r, 0, true
	}
	return r, res.MaxRemaining(), true
}

// mostAsked bounds what an authority can be kept busy with that never answers.
const mostAsked = 64

// ask returns what f answers, if that is no error and comes within the time of a request, and
// before ctx ends and superseded is closed. It waits no longer, though f may not keep to its
// context; of those that do not, mostAsked may be outstanding. A Session that is closed asks
// nothing.
func ask[T any](ctx context.Context, s *Session, superseded <-chan struct{}, f func(context.Context) (T, error)) (answer T, known bool) {
	s.mu.Lock()
	if s.closed || s.asked == mostAsked {
		s.mu.Unlock()
		return answer, false
	}
	s.asked++
	s.begin()
	s.mu.Unlock()
	ctx, cancel := withTimeout(ctx, s.o.Clock, s.o.RequestTimeout)
	defer cancel()
	answers := make(chan T, 1)
	go func() {
		defer s.finish()
		defer func() {
			s.mu.Lock()
			s.asked--
			s.mu.Unlock()
			close(answers)
		}()
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
