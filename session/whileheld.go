package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/notify"
)

// WhileHeld returns a context for work that needs the lease, and a function to call when the work has
// stopped. The context belongs to the term that is held at the time of the call. The Session may rely on the
// lease until the time that [Session.Until] returns. The context ends earlier than that, so that one
// StopWindow is left. If the work stops within one StopWindow after its context has ended, no other holder
// can have the lease while the work is running. The section Conditions of the package documentation lists the
// exceptions. The function [context.Cause] returns why the context has ended:
//
//   - a [*lease.LostError] with the Reason [lease.ErrStopWindow]: the lease is still held, but was not
//     renewed in time, or is breaking;
//   - a *lease.LostError with another Reason: the lease was lost, for example because the process was
//     suspended;
//   - [lease.ErrReleased]: Release, HandOver or Close was called;
//   - [lease.ErrNotHeld]: the lease was not held when WhileHeld was called;
//   - the cause of ctx: ctx has ended;
//   - context.Canceled: the returned function was called.
//
// A context that has ended stays ended, even if a renewal is granted within the StopWindow. If the lease is
// still held after the context has ended, call Release before the next Acquire, because otherwise Acquire
// sends no request and returns true.
//
// The Session assumes that the work is running until the returned function is called. So call the function
// even if the context has ended. If the lease is lost while the work is running, the Session does not release
// the lease until the returned function is called, or until the lease has ended by itself. Otherwise another
// holder could have the lease while the work is running. The function may be called more than once.
func (s *Session) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	c := notify.NewContext(ctx)
	var (
		id      lease.ID // the ID of the term
		refused error
		back    bool // the returned function was called
	)
	s.step(func(m *holder.Machine, _ time.Time) {
		if id, refused = m.WorkBegins(); refused == nil {
			s.contexts.Add(c)
		}
	})
	if refused != nil {
		c.End(refused)
		return c.Context, func() {}
	}
	return c.Context, func() {
		// step detects a loss that the Session has not noticed yet. The context then ends with that loss as
		// its cause.
		s.step(func(m *holder.Machine, _ time.Time) {
			if !back {
				back = true
				m.WorkEnds(id)
			}
		})
		s.contexts.Remove(c)
		c.End(context.Canceled)
	}
}
