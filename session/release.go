package session

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// Release gives the lease up, as [lease.Lease] says, together with whatever an earlier call
// could not settle, and with what may have been handed over to the [Session.ID] that was told.
// The request is sent although ctx may be done; ctx ends the wait for its answer only, and not
// if Release itself ends ctx, which belonged to the incarnation ([Session.WhileHeld]). It waits
// for an Acquire that it supersedes to be undone.
func (s *Session) Release(ctx context.Context) error {
	over := ctx.Err() != nil
	s.lock()
	s.supersede()
	if b := s.end(); b != nil {
		s.drop(lease.ErrReleased)
		s.owe(b.id, b.doubtful)
	} else if s.shown {
		s.forgo()
	}
	s.handing = lease.ID{}
	return s.pay(ctx, over)
}

// releaseUnknown releases what tries of unknown outcome may be granted yet. In difference to
// Release it leaves alone what others hold with the Session, or try.
func (s *Session) releaseUnknown(ctx context.Context) error {
	over := ctx.Err() != nil
	s.lock()
	return s.pay(ctx, over)
}

// forgo gives the proposal up, which may be in force or come to be.
func (s *Session) forgo() {
	id, doubtful := s.proposal, s.doubtful
	s.retire()
	s.owe(id, doubtful)
}

// pay settles what is owed, with the proposal if that may be in force, once nobody tries it, and
// waits for the outcome as Release says; over: not even that, since ctx had ended before the call.
// It is called with mu held, and unlocks it.
func (s *Session) pay(ctx context.Context, over bool) error {
	settle := s.settle
	switch {
	case !s.doubtful: // as whenever something is held
	case s.acquiring == nil:
		s.forgo()
	default:
		settle = s.settleUnknown
	}
	if s.due() == nil && len(s.turn) == 0 {
		s.unlock()
		return nil
	}
	detached := context.WithoutCancel(ctx)
	done := s.detach(detached, settle)
	s.unlock()
	if !over && endedByRelease(ctx) {
		ctx = detached
	}
	return s.outcome(ctx, "release", done)
}

// supersede decides the Acquire that is under way, and makes those return that wait for
// their turn.
func (s *Session) supersede() {
	if s.acquiring != nil {
		s.giveUp(s.acquiring, lease.ErrReleased)
	}
	if s.superseded != nil {
		close(s.superseded)
		s.superseded, s.heeding = nil, 0
	}
}

// supersession returns a channel that the next Release or HandOver closes, for somebody who
// waits, and calls heed with it when he no longer does.
func (s *Session) supersession() <-chan struct{} {
	if s.superseded == nil {
		s.superseded = make(chan struct{})
	}
	s.heeding++
	return s.superseded
}

func (s *Session) heed(superseded <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.superseded != superseded {
		return // it is closed
	}
	if s.heeding--; s.heeding == 0 {
		s.superseded = nil
	}
}

// detach runs f in its turn and delivers its error. It must be called with mu held, and with
// a ctx that does not end.
func (s *Session) detach(ctx context.Context, f func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	s.begin()
	go func() {
		defer s.finish()
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		err := errGone
		defer func() {
			if p := recover(); p != nil {
				panic(p) // which ends the process: nobody is to go on meanwhile
			}
			done <- err
		}()
		err = f(ctx)
	}()
	return done
}

// errGone is the outcome of a request whose goroutine was ended by the authority or by a hook.
var errGone = errors.New("the goroutine of the request has ended, so that the outcome is not known")

// endedByRelease reports whether ctx ended because the lease was given up.
func endedByRelease(ctx context.Context) bool { return context.Cause(ctx) == error(lease.ErrReleased) }

// outcome waits for the error of a detached request. An authority that does not keep to
// its context is given up.
func (s *Session) outcome(ctx context.Context, op string, done <-chan error) error {
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.o.Clock.After(4 * s.o.RequestTimeout):
		err = context.DeadlineExceeded
	}
	if err != nil {
		return s.opError(op, err)
	}
	return nil
}

// settle releases the IDs that are owed, the newest first, until one cannot be.
func (s *Session) settle(ctx context.Context) error {
	for {
		s.mu.Lock()
		d := s.due()
		if d == nil {
			s.mu.Unlock()
			return nil
		}
		id, doubtful := d.id, d.doubtful
		s.mu.Unlock()
		if err := s.free(ctx, id, doubtful); err != nil {
			return err
		}
	}
}

// settleUnknown is settle, with the proposal if that may still be in force: whoever has tried it
// meanwhile has the lease, or does not have the turn any more.
func (s *Session) settleUnknown(ctx context.Context) error {
	s.mu.Lock()
	if s.doubtful {
		s.forgo()
	}
	s.mu.Unlock()
	return s.settle(ctx)
}

// free releases one ID that is owed. A refusal settles it: the ID is not in force. But a
// request of an Acquire whose outcome is not known (doubtful) may yet arrive. What it acquires
// then ends by itself, and is released if a later refusal names it. If it is infinite an
// acquire and a release with the same ID, which both write, leave nothing to swap to what has
// arrived and not been carried out. The ID is remembered all the same: what has not arrived
// yet, or arrives while another holds the lease, is found by a later refusal only.
func (s *Session) free(ctx context.Context, id lease.ID, doubtful bool) error {
	infinite := s.o.Duration == lease.Infinite
	release := lease.Request{Action: lease.ActionRelease, ID: id}
	_, _, _, err := s.do(ctx, release)
	refused := lease.CodeOf(err).Refusal()
	if refused && doubtful && infinite {
		_, _, _, err = s.do(ctx, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: s.Owner(), Duration: s.o.Duration})
		if err == nil {
			_, _, _, err = s.do(ctx, release)
		}
	}
	if lease.CodeOf(err).Refusal() {
		err = nil
	}
	s.mu.Lock()
	defer s.unlock()
	if err == nil {
		s.discharge(id)
	}
	s.traceReleased(ReleaseInfo{ID: id, Err: err})
	return err
}

func (s *Session) traceReleased(info ReleaseInfo) {
	if s.o.Trace != nil && s.o.Trace.Released != nil {
		s.later(func() { s.o.Trace.Released(info) })
	}
	switch log := s.o.Logger; {
	case info.Err != nil:
		s.logFailed("release", info.Err)
	case log != nil:
		s.later(func() { log.Debug("lease: released", "name", s.name, "id", info.ID) })
	}
}
