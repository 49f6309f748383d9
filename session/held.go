package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/cancel"
)

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
	c := cancel.New(ctx)
	var (
		id      lease.ID // of the incarnation
		refused error
		back    bool // the context was given back
	)
	s.step(func(m *machine, now time.Time) {
		if id, refused = m.bind(now); refused == nil {
			s.contexts.Add(c)
		}
	})
	if refused != nil {
		c.End(refused)
		return c.Context, func() {}
	}
	return c.Context, func() {
		// If the lease is lost by now that is the cause, even if nothing has noticed it yet.
		s.step(func(m *machine, now time.Time) {
			if !back {
				back = true
				m.unbind(now, id)
			}
		})
		s.contexts.Remove(c)
		c.End(context.Canceled)
	}
}
