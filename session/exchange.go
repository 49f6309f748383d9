package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

var (
	errGone    = errors.New("the authority ended the goroutine of the request, so the outcome is not known")
	errOverdue = fmt.Errorf("given up, because the authority does not return: %w", context.DeadlineExceeded)
)

// A flight is a request under way. It is answered once: when Do returns, or when it is given up
// because Do has not returned one RequestTimeout after its context ended.
type flight struct {
	request
	answered bool
}

// exchange sends a request and gives the machine the answer, or the news that there is none.
func (s *Session) exchange(r request) {
	ctx, err := s.requestContext(r)
	if err != nil {
		defer s.finish()
		s.step(func(m *machine, now time.Time) { m.unsent(now, err) })
		return
	}
	f := &flight{request: r}
	ctx, stop := s.bounded(ctx, func() { s.answer(f, lease.Result{}, errOverdue, true) })
	var res lease.Result
	err = errGone
	defer func() { // also if Do ends the goroutine
		if panicked := recover(); panicked != nil {
			panic(panicked) // and the process with it: no call returns before
		}
		stop()
		s.answer(f, res, err, false)
	}()
	res, err = s.authority.Do(ctx, s.name, r.Request)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause // a context cannot say by itself that the time of a Clock is up
	}
}

// answer gives the machine the answer to a flight. The answer to one that was given up is dropped,
// and says only that Do has returned; with that the task of the flight ends.
func (s *Session) answer(f *flight, res lease.Result, err error, stuck bool) {
	if !stuck {
		defer s.finish()
	}
	s.step(func(m *machine, now time.Time) {
		switch {
		case !f.answered:
			f.answered = true
			m.answered(f.request, now, res, err, stuck)
		case !stuck:
			m.returned(now)
		}
	})
}

// bounded returns a context that ends after a RequestTimeout, and calls overdue after another one,
// unless stop is called before.
func (s *Session) bounded(ctx context.Context, overdue func()) (_ context.Context, stop func()) {
	d := s.o.RequestTimeout
	if _, ok := s.o.Clock.(system); ok {
		ctx, cancel := context.WithTimeout(ctx, d)
		t := time.AfterFunc(2*d, overdue)
		return ctx, func() { t.Stop(); cancel() }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done, after := make(chan struct{}), s.o.Clock.After(d)
	go func() {
		select {
		case <-after:
			cancel(context.DeadlineExceeded)
		case <-done:
			return
		}
		select {
		case <-s.o.Clock.After(d):
			overdue()
		case <-done:
		}
	}()
	return ctx, func() { close(done); cancel(context.Canceled) }
}

// requestContext returns the context of the call that a request is for, without its end. If the
// context of an Acquire has ended it returns its error: the request must not be sent.
func (s *Session) requestContext(r request) (context.Context, error) {
	s.mu.Lock()
	w := s.calls[r.call]
	s.mu.Unlock()
	switch {
	case w == nil:
		return context.Background(), nil
	case r.aim == aimAcquire && w.ctx.Err() != nil:
		return nil, w.ctx.Err()
	}
	return context.WithoutCancel(w.ctx), nil
}

// tasks counts what Close waits for: goroutines of the Session but for those of handlers. mu is
// held for its methods.
type tasks struct {
	running int
	idle    chan struct{} // closed when a task ends, if somebody waits
}

func (t *tasks) begin() { t.running++ }

func (t *tasks) end() {
	t.running--
	if t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// finish ends a task.
func (s *Session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks.end()
}

// drain waits until no task is left.
func (s *Session) drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.tasks.running > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.tasks.idle == nil {
			s.tasks.idle = make(chan struct{})
		}
		idle := s.tasks.idle
		s.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	return nil
}
