package session

import (
	"context"

	"github.com/fencedlease/lease"
)

// A heldContext is what ends with an incarnation.
type heldContext struct {
	cancel context.CancelCauseFunc
	cause  error // with which it ends when it is no longer needed
}

// WhileHeld returns a context that belongs to the incarnation that is held now. It ends at
// U, at the loss ([context.Cause] is the [*lease.LostError]) or at Release (the cause is
// [lease.ErrReleased]); at once, with the cause [lease.ErrNotHeld], if nothing is held. Call
// the function it returns when the work is done. If the lease is lost by then the cause is the
// loss, also if the process was stopped and nothing has told of it yet.
func (s *Session) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.lock()
	defer s.unlock()
	if s.held == nil {
		cancel(lease.ErrNotHeld)
		return ctx, func() {}
	}
	c := s.bind(cancel)
	return ctx, func() {
		s.lock()
		cause := c.cause
		delete(s.contexts, c)
		s.unlock()
		cancel(cause)
	}
}

// bind makes the end of the incarnation that is held call cancel. It must be called with mu
// held.
func (s *Session) bind(cancel context.CancelCauseFunc) *heldContext {
	c := &heldContext{cancel, context.Canceled}
	if s.contexts == nil {
		s.contexts = make(map[*heldContext]struct{})
	}
	s.contexts[c] = struct{}{}
	return c
}
