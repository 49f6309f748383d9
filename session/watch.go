package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// watchHeld returns a function that begins to watch the record of the incarnation that is held, or
// nil if there is no need. mu is held.
func (s *Session) watchHeld() func() {
	if _, ok := s.authority.(lease.Watcher); !ok || !s.o.Watch {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.watching = cancel
	id := s.machine.term.belief.id
	s.tasks.begin()
	return func() {
		go func() {
			defer s.finish()
			for ctx.Err() == nil {
				s.follow(ctx, id)
				if ctx.Err() == nil {
					_ = sleep(ctx, s.o.Clock, s.jitter(s.o.RenewInterval))
				}
			}
		}()
	}
}

// follow reads the record at once and at every signal of a watch, until the watch is lost or ctx
// ends, and gives the machine what it reads. After a signal without a change it pauses.
func (s *Session) follow(ctx context.Context, id lease.ID) {
	changed, stop := s.watch(ctx)
	defer stop()
	var last lease.Record
	for open := changed != nil; open && ctx.Err() == nil; {
		res, known := s.look(ctx) // the first time, at a change before the watch began
		if known {
			s.step(func(m *machine, now time.Time) { m.looked(now, id, res.Record) })
		}
		if !known || res.Record == last {
			_ = sleep(ctx, s.o.Clock, s.jitter(s.o.RenewInterval/10))
		}
		last = res.Record
		select {
		case _, open = <-changed:
		case <-ctx.Done():
		}
	}
}

// watch begins a watch of the record. The channel is nil if the authority cannot watch, or does
// not now. What the watch needs is freed by stop.
func (s *Session) watch(ctx context.Context) (changed <-chan struct{}, stop func()) {
	w, ok := s.authority.(lease.Watcher)
	if !ok {
		return nil, func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	changed, _ = ask(ctx, s, &s.watches, func(context.Context) (<-chan struct{}, error) { return w.Watch(ctx, s.name) })
	if changed == nil {
		stop()
	}
	return changed, stop
}

// look reads the record. The result is not known if the authority does not show it.
func (s *Session) look(ctx context.Context) (res lease.Result, known bool) {
	res, known = ask(ctx, s, &s.looks, func(ctx context.Context) (lease.Result, error) {
		return lease.Inspect(ctx, s.authority, s.name)
	})
	return res, known && !res.Now.IsZero()
}

// mostAsking bounds the looks, and the watches, of this Session that have not returned. They are not
// commands: one that hangs keeps no request from being sent.
const mostAsking = 16

// ask returns what f answers, if that is not an error and comes within a RequestTimeout and before
// ctx ends. It waits no longer, even if f does not keep to its context. A Session that is closed
// asks nothing.
func ask[T any](ctx context.Context, s *Session, asking *int, f func(context.Context) (T, error)) (answer T, known bool) {
	s.mu.Lock()
	if s.machine.closed || *asking == mostAsking {
		s.mu.Unlock()
		return answer, false
	}
	*asking++
	s.tasks.begin()
	s.mu.Unlock()
	ctx, cancel := withTimeout(ctx, s.o.Clock, s.o.RequestTimeout)
	defer cancel()
	answers := make(chan T, 1)
	go func() {
		defer s.finish()
		defer func() {
			s.mu.Lock()
			*asking--
			s.mu.Unlock()
			close(answers)
		}()
		if answer, err := f(ctx); err == nil {
			answers <- answer
		}
	}()
	select {
	case answer, known = <-answers:
	case <-ctx.Done():
	}
	return answer, known
}
