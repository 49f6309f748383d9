package session

import (
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// publish shows the belief to those who take no lock.
func (s *Session) publish() { s.belief.Store(s.held) }

// pace is the time to the next renewal after a granted one: the RenewInterval, but never more
// than half of what is believed.
func (s *Session) pace() time.Duration {
	return s.shorten(min(s.o.RenewInterval, s.held.budget/2), 0.1)
}

// schedule plans the next renewal and sets the alarm for that or for U, whichever is
// sooner. What is held is alive.
func (s *Session) schedule(from time.Time, d time.Duration) {
	s.next = from.Add(d)
	s.wake(s.o.Clock.Now())
}

func (s *Session) wake(now time.Time) {
	wait := s.held.left(s.o, now)
	if !s.renewing {
		wait = min(wait, s.next.Sub(now))
	}
	if wait != lease.Infinite {
		if start := s.alarm.set(wait); start != nil {
			s.later(start)
		}
	}
}

// ring is called when a renewal is due, when the belief ends, or for nothing. The end of a
// belief waits for no request.
func (s *Session) ring() {
	now := s.lock()
	s.begin() // hooks may be called by the unlocking
	defer s.finish()
	defer s.unlock()
	if s.held == nil {
		return
	}
	if !s.renewing && !now.Before(s.next) {
		s.renewing = true
		s.begin()
		go s.renew(s.held.id, s.incarnation)
	}
	s.wake(now)
}

// renew sends one renewal and does what its answer means.
func (s *Session) renew(id lease.ID, incarnation uint64) {
	defer s.finish()
	res, sent, answered, err := s.do(context.Background(), lease.Request{Action: lease.ActionRenew, ID: id})
	now := s.lock()
	defer s.unlock()
	if s.held == nil || s.incarnation != incarnation {
		s.traceRenew(RenewInfo{Err: err, Took: answered.Sub(sent)})
		s.detach(context.Background(), s.settle) // it may have been granted after the release
		return
	}
	s.renewing = false
	info := RenewInfo{Token: s.held.token, Err: err, Took: answered.Sub(sent), Margin: s.held.left(s.o, now)}
	s.traceRenew(info)
	v, reason := s.renewed(sent, now, res, err)
	if v == lost {
		s.lose(reason, err)
		return
	}
	s.publish()
	s.failed = nil
	if v == unknown {
		s.failed = err
	}
	if reason, over := s.over(now); over { // granted, or broken, for less than the answer took
		s.lose(reason, err)
		return
	}
	if v == breaking {
		s.tellBreaking()
	}
	switch {
	case v == unknown:
		s.logFailed("renewal", err)
		s.schedule(now, s.shorten(s.o.RetryDelay, 0.5))
	case s.urgent:
		s.schedule(now, 0)
	default:
		s.schedule(sent, s.pace())
	}
	s.urgent = false
}

// lose ends the incarnation as lost and tells so. It must be called with mu held.
func (s *Session) lose(reason lease.Code, err error) {
	b := s.end()
	lost := &lease.LostError{Name: s.name, Token: b.token, Reason: reason, Err: err}
	s.drop(lost)
	dispatch(s, &s.onLost, error(lost))
	if log := s.o.Logger; log != nil {
		s.later(func() {
			log.Error("lease: lost", "name", s.name, "token", b.token, "reason", reason.String(), "err", err)
		})
	}
	if s.o.Trace != nil && s.o.Trace.Lost != nil {
		s.later(func() { s.o.Trace.Lost(lost) })
	}
	// A renewal may have been granted without an answer, or an earlier request to acquire may
	// yet be: then the lease would stay with nobody.
	if reason == lease.ErrExpired || b.doubtful {
		s.owe(b.id, b.doubtful)
		s.detach(context.Background(), s.settle)
	}
}

// drop takes the belief from everybody who relies on it.
func (s *Session) drop(cause error) {
	s.publish()
	s.alarm.unset()
	contexts := s.contexts
	s.contexts = nil
	for c := range contexts {
		c.cause = cause // whoever calls cancel first
	}
	s.effects = slices.Insert(s.effects, 0, func() { // before any hook, which might take long
		for c := range contexts {
			c.cancel(cause)
		}
	})
}

func (s *Session) tellBreaking() {
	tok, until := s.held.token, s.held.until()
	dispatch(s, &s.onBreak, until)
	if log := s.o.Logger; log != nil {
		s.later(func() { log.Warn("lease: breaking", "name", s.name, "token", tok, "until", until) })
	}
	if s.o.Trace != nil && s.o.Trace.Breaking != nil {
		s.later(func() { s.o.Trace.Breaking(tok, until) })
	}
}

func (s *Session) traceRenew(info RenewInfo) {
	if s.o.Trace != nil && s.o.Trace.Renew != nil {
		s.later(func() { s.o.Trace.Renew(info) })
	}
}

func (s *Session) logFailed(what string, err error) {
	if log := s.o.Logger; log != nil {
		s.later(func() { log.Warn("lease: "+what+" failed", "name", s.name, "err", err) })
	}
}
