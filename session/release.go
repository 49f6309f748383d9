package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencedlease/lease"
)

// Release gives the lease up, as [lease.Lease] says, together with whatever an earlier call
// could not settle. The request is sent although ctx may be done; ctx ends the wait for its
// answer only. It waits for an Acquire that it supersedes to be undone.
func (s *Session) Release(ctx context.Context) error {
	s.lock()
	s.supersede()
	if b := s.end(); b != nil {
		s.drop(lease.ErrReleased)
		s.owe(b.id, false)
	} else if s.doubtful {
		s.owe(s.proposal, true)
		s.retire()
	}
	s.handing = lease.ID{}
	if len(s.unsettled) == 0 && len(s.turn) == 0 {
		s.unlock()
		return nil
	}
	done := s.detach(ctx, s.settleAll)
	s.unlock()
	return s.outcome(ctx, "release", done)
}

// supersede makes every Acquire that is under way return.
func (s *Session) supersede() {
	s.gone++
	if s.release != nil {
		close(s.release)
		s.release = nil
	}
}

// detach runs f in its turn, whatever becomes of ctx, and delivers its error. It must be
// called with mu held.
func (s *Session) detach(ctx context.Context, f func(context.Context) error) <-chan error {
	ctx = context.WithoutCancel(ctx)
	done := make(chan error, 1)
	s.begin()
	go func() {
		defer s.finish()
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		done <- f(ctx)
	}()
	return done
}

// outcome waits for the error of a detached request. An authority that does not keep to
// its context is given up.
func (s *Session) outcome(ctx context.Context, op string, done <-chan error) error {
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.Clock.After(4 * s.Timeout):
		err = context.DeadlineExceeded
	}
	if err != nil {
		return s.opError(op, err)
	}
	return nil
}

// settleAll releases every ID whose release is not certain.
func (s *Session) settleAll(ctx context.Context) error {
	s.mu.Lock()
	debts := slices.Clone(s.unsettled)
	s.mu.Unlock()
	var errs []error
	for _, d := range debts {
		errs = append(errs, s.free(ctx, d.id, d.doubtful))
	}
	return errors.Join(errs...)
}

// free releases one retired ID. A refusal settles it: the ID is not in force. But a request
// of unknown outcome (doubtful) may yet arrive and acquire; what it acquires ends by itself,
// unless it is infinite. Then an acquire and a release with the same ID, which both write,
// leave it nothing to arrive at.
func (s *Session) free(ctx context.Context, id lease.ID, doubtful bool) error {
	release := lease.Request{Action: lease.Release, ID: id}
	_, _, _, err := s.do(ctx, release)
	if doubtful && s.Duration == lease.Infinite && lease.CodeOf(err).Refusal() {
		_, _, _, err = s.do(ctx, lease.Request{Action: lease.Acquire, Proposed: id, Owner: s.Owner(), Duration: s.Duration})
		if err == nil {
			_, _, _, err = s.do(ctx, release)
		}
	}
	if lease.CodeOf(err).Refusal() {
		err = nil
	}
	s.mu.Lock()
	defer s.unlock()
	if err != nil {
		s.owe(id, doubtful)
	} else {
		s.settle(id)
	}
	s.traceReleased(ReleaseInfo{ID: id, Err: err})
	return err
}

// HandOver gives the lease to another Session, whose [Session.ID] is to: the authority
// changes the ID in force, so that nobody can come between, and the receiver's next Acquire
// is granted with a newer token.
//
// It ends the incarnation as Release does, also if it errs, since the receiver may hold from
// the moment the authority has carried it out: CheckAlive is false from the call on, and
// OnLost is not told. After an error call it again with the same ID, or Release. Only a
// context that is done already, an ID that cannot be given to, and a lease that is not held
// ([lease.ErrNotHeld]) end nothing.
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
		s.supersede()
		s.drop(lease.ErrReleased)
	}
	s.handing = from
	s.owe(from, false)
	done := s.detach(ctx, func(ctx context.Context) error { return s.give(ctx, from, to) })
	s.unlock()
	return s.outcome(ctx, "hand over", done)
}

func (s *Session) give(ctx context.Context, from, to lease.ID) error {
	_, _, _, err := s.do(ctx, lease.Request{Action: lease.Change, ID: from, Proposed: to})
	if lease.CodeOf(err).Refusal() {
		err = fmt.Errorf("the lease is no longer this session's to give, or is breaking: %w", err)
	}
	s.mu.Lock()
	defer s.unlock()
	if err == nil {
		s.settle(from)
	}
	if err == nil || lease.CodeOf(err).Refusal() {
		s.handing = lease.ID{}
	}
	s.traceReleased(ReleaseInfo{ID: from, To: to, Err: err})
	return err
}

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
		s.notify()
		defer func() { s.closing-- }()
	}
	for s.tasks > s.closing {
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
		if err := ctx.Err(); err != nil && s.tasks > s.closing {
			return s.opError("close", err)
		}
	}
	return nil
}

func (s *Session) traceReleased(info ReleaseInfo) {
	if s.Trace != nil && s.Trace.Released != nil {
		s.later(func() { s.Trace.Released(info) })
	}
	if log := s.Logger; log != nil {
		s.later(func() { log.Debug("lease: released", "name", s.name, "id", info.ID, "err", info.Err) })
	}
}
