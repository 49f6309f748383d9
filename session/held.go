package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// A heldContext is a context of WhileHeld.
type heldContext struct {
	id     lease.ID // of its incarnation
	cancel context.CancelCauseFunc
	cause  error // with which it ends when it is given back
	back   bool  // it was given back
}

// WhileHeld returns a context for work under the incarnation that is held now, and a function to
// call when the work has stopped. The context ends a StopWindow before U, so that work which stops
// within the window has stopped before another holder can begin. [context.Cause] says why it
// ended:
//
//   - a [*lease.LostError] with the Reason [lease.ErrStopWindow]: the lease is still held, but was
//     not renewed in time, or is breaking;
//   - a [*lease.LostError] with another Reason: the lease was lost, for instance because the
//     process was paused;
//   - [lease.ErrReleased]: Release, HandOver or Close was called;
//   - [lease.ErrNotHeld]: nothing was held at the call.
//
// A renewal that is granted inside the window does not bring the context back. A program with a
// loop of its own must then Release before it goes on: until then Acquire returns the same
// incarnation.
//
// While the function was not called the Session takes the work to be running. After a loss it then
// does not release the lease, which would let a successor begin at once. It waits for the call, or
// until the lease has ended by itself. Call the function even if the context has ended; it may be
// called more than once.
func (s *Session) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &heldContext{cancel: cancel, cause: context.Canceled}
	var refused error
	s.step(func(m *machine, now time.Time) {
		if c.id, refused = m.bind(now); refused != nil {
			return
		}
		if s.contexts == nil {
			s.contexts = make(map[*heldContext]struct{})
		}
		s.contexts[c] = struct{}{}
	})
	if refused != nil {
		cancel(refused)
		return ctx, func() {}
	}
	return ctx, func() { s.giveBack(c) }
}

// giveBack ends a context. If the lease is lost by now the cause is the loss, even if nothing has
// noticed it yet.
func (s *Session) giveBack(c *heldContext) {
	s.step(func(m *machine, now time.Time) {
		if !c.back {
			c.back = true
			m.unbind(now, c.id)
		}
	})
	s.mu.Lock()
	delete(s.contexts, c)
	cause := c.cause
	s.mu.Unlock()
	c.cancel(cause)
}
