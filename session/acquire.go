package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Acquire tries once to take the lease, as [lease.Lease] says.
func (s *Session) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := s.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is Acquire and returns the fencing token of the incarnation that is held.
//
// Calls take turns, also with the undoing of an earlier one that was abandoned. A call that
// is abandoned by its context, superseded by Release, or not answered for twice the Timeout
// returns at once, and is undone as soon as its request has settled.
func (s *Session) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	s.lock()
	if s.held != nil {
		defer s.unlock()
		return s.held.token, true, nil
	}
	if s.release == nil {
		s.release = make(chan struct{})
	}
	began, released := s.gone, s.release
	s.unlock()
	if err := ctx.Err(); err != nil {
		return "", false, s.opError("acquire", err)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", false, s.opError("acquire", ctx.Err())
	case <-released:
		return "", false, s.opError("acquire", lease.ErrReleased)
	}
	a, err := s.attempt(ctx, began)
	if a == nil {
		<-s.turn
		return "", false, err
	}
	return s.await(ctx, a, released)
}

// An attempt is one Acquire under way. What it comes to is decided once: by the answer, or
// by whoever stops waiting for that.
type attempt struct {
	id        lease.ID
	doubtful  bool          // an earlier request with this ID has no known outcome
	done      chan struct{} // closed when the answer has decided
	decided   bool
	abandoned bool

	token lease.Token
	ok    bool
	err   error
}

// attempt starts the request, unless it has become needless. The turn is handed to it.
func (s *Session) attempt(ctx context.Context, began int) (*attempt, error) {
	s.lock()
	defer s.unlock()
	switch {
	case s.closed:
		return nil, s.opError("acquire", lease.ErrClosed)
	case s.gone != began:
		return nil, s.opError("acquire", lease.ErrReleased)
	case ctx.Err() != nil:
		return nil, s.opError("acquire", ctx.Err())
	}
	a := &attempt{doubtful: s.doubtful, done: make(chan struct{})}
	if s.held != nil { // another call has acquired meanwhile
		a.decide(s.held.token, true, nil)
		<-s.turn
		return a, nil
	}
	a.id = s.propose()
	s.begin()
	go func() {
		defer s.finish()
		defer func() { <-s.turn }()
		s.try(ctx, a)
	}()
	return a, nil
}

func (a *attempt) decide(tok lease.Token, ok bool, err error) {
	a.decided, a.token, a.ok, a.err = true, tok, ok, err
	close(a.done)
}

// await waits for the decision, or abandons the attempt.
func (s *Session) await(ctx context.Context, a *attempt, released <-chan struct{}) (lease.Token, bool, error) {
	var err error
	select {
	case <-a.done:
		return a.token, a.ok, a.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-released:
		err = lease.ErrReleased
	case <-s.overdue(a):
		err = context.DeadlineExceeded
	}
	s.lock()
	defer s.unlock()
	if a.decided {
		return a.token, a.ok, a.err
	}
	a.abandoned = true
	s.retire()
	return "", false, s.opError("acquire", err)
}

// overdue bounds the wait for an authority that does not keep to its context.
func (s *Session) overdue(a *attempt) <-chan time.Time {
	select {
	case <-a.done:
		return nil
	default:
		return s.Clock.After(2 * s.Timeout)
	}
}

// try sends the request and decides what its answer means. It holds the turn.
func (s *Session) try(ctx context.Context, a *attempt) {
	acquire := lease.Request{Action: lease.Acquire, Proposed: a.id, Owner: s.Owner(), Duration: s.Duration}
	res, sent, now, err := s.do(ctx, acquire)
	v := s.judge(a, sent, now, res, err)
	if v == stale {
		v = s.takeOver(ctx, a, acquire, res.Record.ID)
	}
	switch v {
	case ours:
		s.mu.Lock()
		d := s.owes(res.Record.ID)
		doubtful := d != nil && d.doubtful
		s.mu.Unlock()
		_ = s.free(ctx, res.Record.ID, doubtful)
	case late, undo:
		_ = s.free(ctx, a.id, v == undo)
	}
}

// takeOver changes the ID of an earlier holder to a fresh one and acquires with it: two
// rows of the published table. The earlier holder is refused when it next renews.
func (s *Session) takeOver(ctx context.Context, a *attempt, acquire lease.Request, from lease.ID) verdict {
	res, sent, now, err := s.do(ctx, lease.Request{Action: lease.Change, ID: from, Proposed: a.id, Owner: s.Owner()})
	if err == nil {
		res, sent, now, err = s.do(ctx, acquire)
	} else if lease.CodeOf(err).Refusal() {
		// Somebody was faster, with a change, a break or a release.
		if res.Record.State.Locked() {
			err = lease.ErrHeld
		}
	}
	if lease.CodeOf(err) == lease.ErrHeld {
		res = lease.Result{} // one call takes over once
	}
	return s.judge(a, sent, now, res, err)
}

// judge decides the attempt by an answer, unless the verdict is that there is more to do.
func (s *Session) judge(a *attempt, sent, now time.Time, res lease.Result, err error) verdict {
	s.mu.Lock()
	defer s.unlock()
	info := AcquireInfo{Took: now.Sub(sent), Abandoned: a.abandoned}
	if a.abandoned {
		s.traceAcquire(info)
		switch code := lease.CodeOf(err); {
		case err == nil:
			return late
		case a.doubtful || code == 0 || code == lease.ErrConflict || code == lease.ErrBreaking:
			return undo
		}
		return taken // certainly not granted: nothing to undo
	}
	v := s.acquired(a.id, sent, now, res, err)
	switch v {
	case stale:
		return v
	case granted:
		a.decide(s.held.token, true, nil)
		info.Token = s.held.token
		s.renewing, s.handing = false, lease.ID{}
		s.publish()
		s.schedule(sent, s.pace())
		s.logAcquired(s.held)
	case taken:
		a.decide("", false, nil)
	case ours:
		a.decide("", false, s.opError("acquire", errUnsettled))
	case hidden:
		a.decide("", false, s.opError("acquire", fmt.Errorf("the authority does not tell the ID to take over: %w", errors.ErrUnsupported)))
	case late:
		s.retire()
		a.decide("", false, s.opError("acquire", fmt.Errorf("granted after %v, when nothing was certain any more: %w", now.Sub(sent), lease.ErrExpired)))
	case undo:
		s.retire()
		a.decide("", false, s.opError("acquire", err))
	default:
		if err == nil {
			err = errors.New("the authority granted something else than what was asked for")
		}
		a.decide("", false, s.opError("acquire", err))
	}
	info.Err = a.err
	s.traceAcquire(info)
	return v
}

var errUnsettled = errors.New("held by an earlier incarnation of this session, whose release is being tried again")

// opError adds the operation and the name, once.
func (s *Session) opError(op string, err error) error {
	if e := (*lease.OpError)(nil); errors.As(err, &e) {
		return err
	}
	return &lease.OpError{Op: op, Name: s.name, Err: err}
}

func (s *Session) traceAcquire(info AcquireInfo) {
	if s.Trace != nil && s.Trace.Acquire != nil {
		s.later(func() { s.Trace.Acquire(info) })
	}
}

func (s *Session) logAcquired(b *belief) {
	if s.Logger != nil {
		s.later(func() { s.Logger.Debug("lease: acquired", "name", s.name, "token", b.token, "until", b.until()) })
	}
}
