package session

import (
	"context"
	"errors"
	"slices"
)

// Close releases the lease and waits until nothing is left: no request, no timer, no
// handler but those that are themselves inside Close. From then on Acquire fails with
// [lease.ErrClosed]. It returns the error of the release, or the context's if that ends
// first; what is left then still ends by itself. Close may be called again.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.Release(ctx)
	return errors.Join(err, s.drain(ctx))
}

// drain waits for all tasks, less the handlers that wait here themselves.
func (s *Session) drain(ctx context.Context) error {
	me := goroutine()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.handling, me) {
		s.closing++
		defer func() { s.closing-- }()
	}
	for s.tasks > s.closing {
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
	return nil
}
