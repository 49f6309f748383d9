package session

import (
	"context"
	"errors"
)

// Close releases the lease and waits until nothing is left: no request, no timer, no
// handler. From then on Acquire fails with [lease.ErrClosed]. It returns the error of the
// release, or the context's if that ends first; what is left then still ends by itself. Close
// may be called again.
//
// The context of a test is done when its clean-ups run: there, as in a defer of a program that
// is told to stop, give Close a context of its own.
//
// Inside a handler, of this Session or of another, Close waits for no handlers: they might be
// waiting for each other. Of a Close on another goroutine nobody knows that a handler waits for
// it; give that a context that ends.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.Release(ctx)
	return errors.Join(err, s.drain(ctx, handling.inside()))
}

// drain waits for all tasks, or for all but handlers.
func (s *Session) drain(ctx context.Context, butHandlers bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		left := s.tasks
		if butHandlers {
			left -= s.handling
		}
		if left == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return s.opError("close", err)
		}
		if s.settled == nil {
			s.settled = make(chan struct{})
		}
		settled := s.settled
		s.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
}
