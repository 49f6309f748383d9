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
// is abandoned by its context, superseded by Release, or not answered for twice the RequestTimeout
// returns at once, and is undone as soon as its request has settled. If it cannot be, because
// the authority does not answer, the next Acquire that finds it in force, Release or Close does
// it; a finite lease also ends by itself.
func (s *Session) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	s.lock()
	held, closed, superseded := s.held, s.closed, s.supersession()
	s.unlock()
	defer s.heed(superseded)
	switch {
	case held != nil:
		return held.token, true, nil
	case closed:
		return "", false, s.opError("acquire", lease.ErrClosed)
	}
	overdue := s.o.Clock.After(2 * s.o.RequestTimeout) // an authority need not keep to its context
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", false, s.opError("acquire", ctx.Err())
	case <-superseded:
		return "", false, s.opError("acquire", lease.ErrReleased)
	case <-overdue:
		return "", false, s.opError("acquire", context.DeadlineExceeded)
	}
	a := s.attempt(ctx, superseded)
	select {
	case <-a.done:
	case <-ctx.Done():
		s.abandon(a, ctx.Err())
	case <-overdue:
		s.abandon(a, context.DeadlineExceeded)
	}
	<-a.done
	return a.token, a.ok, a.err
}

// An attempt is one Acquire under way. What it comes to is decided once: by the answer, or
// by whoever gives it up before. Until then it is Session.acquiring, and its ID the proposal.
type attempt struct {
	id        lease.ID
	doubtful  bool          // the ID may be in force by an earlier request
	tookOver  bool          // it has tried to take the lease over
	abandoned bool          // decided without an answer
	done      chan struct{} // closed after the decision

	token lease.Token
	ok    bool
	err   error
}

// attempt starts the request, unless it has become needless. The turn is handed to it.
func (s *Session) attempt(ctx context.Context, superseded <-chan struct{}) *attempt {
	s.lock()
	defer s.unlock()
	a := &attempt{done: make(chan struct{})}
	switch {
	case s.superseded != superseded:
		s.decide(a, "", false, lease.ErrReleased)
	case s.held != nil: // another call has acquired meanwhile
		s.decide(a, s.held.token, true, nil)
	case ctx.Err() != nil:
		s.decide(a, "", false, ctx.Err())
	default:
		a.id, a.doubtful = s.propose(), s.doubtful
		s.acquiring = a
		s.begin()
		go func() {
			defer s.finish()
			defer func() { <-s.turn }()
			s.try(ctx, a)
		}()
		return a
	}
	<-s.turn
	return a
}

// decide must be called with mu held. Whoever waits for the decision learns of it once
// everything is in place: the alarm set, the hooks called.
func (s *Session) decide(a *attempt, tok lease.Token, ok bool, err error) {
	if err != nil {
		err = s.opError("acquire", err)
	}
	a.token, a.ok, a.err = tok, ok, err
	s.acquiring = nil
	s.later(func() { close(a.done) })
}

// abandon decides an attempt that has no answer yet. If its grant lands it is undone.
func (s *Session) abandon(a *attempt, err error) {
	s.mu.Lock()
	defer s.unlock()
	s.giveUp(a, err)
}

func (s *Session) giveUp(a *attempt, err error) {
	if a == s.acquiring {
		a.abandoned = true
		s.retire()
		s.decide(a, "", false, err)
	}
}

// try sends the request, decides what its answer means, and settles what is left to settle.
// It holds the turn.
func (s *Session) try(ctx context.Context, a *attempt) {
	acquire := lease.Request{Action: lease.ActionAcquire, Proposed: a.id, Owner: s.Owner(), Duration: s.o.Duration}
	res, sent, now, err := s.do(ctx, acquire)
	v := s.judge(a, sent, now, res, err)
	if v == stale {
		v = s.takeOver(ctx, a, acquire, res.Record.ID)
	}
	if v == ours || v == late || v == undo {
		_ = s.settle(ctx)
	}
}

// takeOver changes the ID of an earlier holder to a fresh one and acquires with it: two
// rows of the published table. The earlier holder is refused when it next renews.
func (s *Session) takeOver(ctx context.Context, a *attempt, acquire lease.Request, from lease.ID) verdict {
	res, sent, now, err := s.do(ctx, lease.Request{Action: lease.ActionChange, ID: from, Proposed: a.id, Owner: s.Owner()})
	s.mu.Lock()
	a.tookOver = true
	if !certain(err) {
		a.doubtful, s.doubtful = true, !a.abandoned // an abandoned one's ID is retired
	}
	s.mu.Unlock()
	if err == nil || lease.CodeOf(err).Refusal() { // refused: somebody was faster, and may be gone
		res, sent, now, err = s.do(ctx, acquire)
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
		if certain(err) && !a.doubtful && lease.CodeOf(err) != lease.ErrBreaking {
			return taken // certainly not granted: nothing to undo
		}
		s.owe(a.id, a.doubtful || err != nil)
		return undo
	}
	v := s.acquired(a.id, sent, now, res, err)
	switch v {
	case stale:
		if !a.tookOver {
			return stale
		}
		v, err = taken, nil // one call takes over once
	case granted:
		info.Token = s.held.token
		s.renewing, s.urgent, s.failed, s.handing = false, false, nil, lease.ID{}
		s.publish()
		s.schedule(sent, s.pace())
		s.attend()
		s.logAcquired(s.held)
	case taken:
		err = nil
	case ours:
		err = errUnsettled
	case hidden:
		err = fmt.Errorf("the authority does not tell the ID to take over: %w", errors.ErrUnsupported)
	case late:
		s.retire()
		s.owe(a.id, a.doubtful)
		err = fmt.Errorf("granted after %v, when nothing was certain any more: %w", now.Sub(sent), lease.ErrExpired)
	case undo:
		s.retire()
		s.owe(a.id, a.doubtful)
	default:
		if err == nil {
			err = errors.New("the authority granted something else than what was asked for")
		}
	}
	if info.Err = err; err != nil {
		s.logFailed("acquire", err)
	}
	s.traceAcquire(info)
	s.decide(a, info.Token, v == granted, err)
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
	if s.o.Trace != nil && s.o.Trace.Acquire != nil {
		s.later(func() { s.o.Trace.Acquire(info) })
	}
}

func (s *Session) logAcquired(b *belief) {
	if s.o.Logger != nil {
		s.later(func() { s.o.Logger.Debug("lease: acquired", "name", s.name, "token", b.token, "until", b.until()) })
	}
}
