package session

import (
	"context"

	"github.com/fencedlease/lease"
)

// HandOver gives the lease to another Session, whose [Session.ID] is to: the authority
// changes the ID in force, so that nobody can come between, and the receiver's next Acquire
// is granted with a newer token. Until then it is locked under the old owner's label; if the
// receiver goes away without a Release or Close, it stays so for what was left of it, and an
// infinite lease until somebody revokes it.
//
// It ends the incarnation as Release does, also if it errs, since the receiver may hold from
// the moment the authority has carried it out: CheckAlive is false from the call on, and
// OnLost is not told. If the authority refuses, which it does to a lease that is breaking,
// the lease is released. After any other error call HandOver again with the same ID, or
// Release; an Acquire that finds the ID still in force releases it too. Only a context that is
// done already, an ID that cannot be given to, and a lease that is not held
// ([lease.ErrNotHeld]) end nothing. A context that HandOver itself ends, since it belonged to
// the incarnation ([Session.WhileHeld]), does not end the wait.
func (s *Session) HandOver(ctx context.Context, to lease.ID) error {
	if err := ctx.Err(); err != nil {
		return s.opError("hand over", err)
	}
	s.lock()
	from := s.handing
	if s.held != nil {
		from = s.held.id
	}
	switch {
	case from.IsZero():
		s.unlock()
		return s.opError("hand over", lease.ErrNotHeld)
	case to.IsZero() || to == from:
		s.unlock()
		return s.opError("hand over", &lease.FieldError{Field: "to", Value: to.String(), Bound: "must be the ID of another session", Code: lease.ErrProposed})
	}
	if b := s.end(); b != nil {
		s.supersede() // an Acquire that waits for its turn might give the hand-over up
		s.drop(lease.ErrReleased)
		s.owe(from, b.doubtful)
	}
	s.handing = from
	detached := context.WithoutCancel(ctx)
	done := s.detach(detached, func(ctx context.Context) error { return s.give(ctx, from, to) })
	s.unlock()
	if endedByRelease(ctx) {
		ctx = detached
	}
	return s.outcome(ctx, "hand over", done)
}

func (s *Session) give(ctx context.Context, from, to lease.ID) error {
	_, _, _, err := s.do(ctx, lease.Request{Action: lease.ActionChange, ID: from, Proposed: to})
	refused := lease.CodeOf(err).Refusal()
	s.mu.Lock()
	if err == nil {
		s.discharge(from)
	}
	if s.handing == from && (err == nil || refused) {
		s.handing = lease.ID{}
	}
	s.traceReleased(ReleaseInfo{ID: from, To: to, Err: err})
	s.unlock()
	if refused {
		_ = s.settle(ctx) // if it is breaking it is still locked
	}
	return err
}
