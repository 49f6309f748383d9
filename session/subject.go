package session

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/holder"
)

// A subject is the Lease that Run uses. A Session has all of these methods. A type that embeds a Session has
// them too, and may replace some of them.
type subject interface {
	lease.TokenAcquirer
	lease.Waiter
	WhileHeld(context.Context) (context.Context, context.CancelFunc)
	Name() string
	Owner() string
	AcquireUnlessHeld(context.Context) (lease.Token, bool, error)
	ReleaseUncertain(context.Context) error
	self() *Session
}

// subjectOf returns l itself if it has all methods of a subject, and otherwise wraps it.
func subjectOf(l lease.Lease) subject {
	if s, ok := l.(subject); ok {
		return s
	}
	return other{l}
}

// A Lease that is not a Session lacks some methods of a subject. The wrapper type other adds the missing
// methods.
type other struct{ lease.Lease }

func (o other) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	return lease.AcquireWithToken(ctx, o.Lease)
}

func (o other) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	return o.AcquireWithToken(ctx)
}

func (o other) ReleaseUncertain(ctx context.Context) error { return o.Release(ctx) }

func (o other) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	return lease.WhileHeld(ctx, o.Lease)
}

func (o other) Wait(ctx context.Context) error {
	if w, ok := o.Lease.(lease.Waiter); ok {
		return w.Wait(ctx)
	}
	return errNoWaiter
}

var errNoWaiter = errors.New("the lease is no lease.Waiter")

func (o other) Name() string {
	if l, ok := o.Lease.(interface{ Name() string }); ok {
		return l.Name()
	}
	return ""
}

func (o other) Owner() string {
	if l, ok := o.Lease.(interface{ Owner() string }); ok {
		return l.Owner()
	}
	return ""
}

// The method o.self returns the Session that the Lease embeds, or nil. A Lease that embeds a Session needs
// the wrapper if a field of the Lease hides a method of the Session.
func (o other) self() *Session {
	if l, ok := o.Lease.(interface{ self() *Session }); ok {
		return l.self()
	}
	return nil
}

// self lets Run find the Session that another type embeds.
func (s *Session) self() *Session { return s }

// The method s.lastHolder returns the owner in the answer to the last Acquire that was refused. If this
// answer contained no owner, the result is "".
func (s *Session) lastHolder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lockedBy
}

// takeOverOf returns the loss of the term with the given token, if another Session took the lease over, and
// otherwise nil.
func (s *Session) takeOverOf(tok lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takenOver == nil || s.takenOver.Token != tok {
		return nil
	}
	return s.takenOver
}

// The method s.holdUntil ends the term with the given token, but keeps the lease locked until the duration
// hold has passed since the grant. If this duration has already passed, or if the term has ended, s.holdUntil
// returns false.
func (s *Session) holdUntil(tok lease.Token, granted time.Time, hold time.Duration) (holds bool) {
	due := granted.Add(s.machineOptions.MaxElsewhere(hold))
	s.step(func(m *holder.Machine, now time.Time) { holds = m.HoldUntil(now, tok, due) })
	return holds
}

func (s *Session) stall(tok lease.Token, why error) {
	s.step(func(m *holder.Machine, _ time.Time) { m.Stall(tok, why) })
}

// forgetLoss makes the next Release return nil, although the lease was lost.
func (s *Session) forgetLoss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.ForgetLoss()
}
