package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/cancel"
)

// WhileHeld returns a context for work that needs the lease, and a function to call when the work
// has stopped. The context belongs to the incarnation that is held at the time of the call. The
// context ends one StopWindow before U. If the work stops within one StopWindow after the context
// has ended, no other holder can have the lease while the work is running. The section Conditions of
// the package documentation lists the exceptions. The function [context.Cause] returns why the
// context has ended:
//
//   - a [*lease.LostError] with the Reason [lease.ErrStopWindow]: the lease is still held, but was
//     not renewed in time, or is breaking;
//   - a [*lease.LostError] with another Reason: the lease was lost, for example because the process
//     was suspended;
//   - [lease.ErrReleased]: Release, HandOver or Close was called;
//   - [lease.ErrNotHeld]: the lease was not held at the call;
//   - the cause of ctx: ctx has ended;
//   - [context.Canceled]: the returned function was called.
//
// A context that has ended stays ended, even if a renewal is granted within the StopWindow. If the
// context has ended but the lease is still held, call Release before the next Acquire. Without a
// Release, the old incarnation is still held, so Acquire sends no request and returns true.
//
// Until the returned function is called, the Session assumes that the work is running. If the lease
// is lost while the work is running, the Session does not release the lease at once. An immediate
// release would let another holder acquire the lease while the work is running. The Session
// therefore delays the release until the returned function is called or the lease has ended by
// itself. Call the returned function even if the context has ended. The returned function may be
// called more than once.
func (s *Session) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	c := cancel.New(ctx)
	var (
		id      lease.ID // the ID of the incarnation
		refused error
		back    bool // the returned function was called
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
		// The call of step detects a loss that the Session has not noticed yet. If there is such a
		// loss, the context ends with the loss as its cause.
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
