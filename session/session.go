package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A Session is a holder of one lease: a [lease.TokenAcquirer] and [lease.Waiter] over any
// [lease.Authority]. It may be used by any number of goroutines and from inside its own
// handlers.
//
// A Session that holds goes on renewing until Release or Close, also if nobody refers to it
// any more. It can hold, lose and hold again any number of times. Each time is an incarnation
// with an ID of its own, and no event of one reaches another.
type Session struct {
	name      string
	authority lease.Authority
	belief    atomic.Pointer[belief] // holder.held, for those who take no lock

	// turn is held by whoever sends requests other than renewals: two acquires, or an
	// acquire and the undoing of an earlier one, never overlap. It is taken before mu.
	turn chan struct{}

	mu sync.Mutex // never held while waiting or calling out, but to the Clock and Rand
	holder
	alarm      alarm
	next       time.Time     // when the next renewal is due
	acquiring  *attempt      // not decided yet; nil: none
	failed     error         // of the last renewal, if it was not granted
	superseded chan struct{} // closed by the next Release or HandOver, if somebody waits
	onLost     handlers[error]
	onBreak    handlers[time.Time]
	contexts   map[*heldContext]struct{}
	effects    []func() // to be run once mu is free

	settled  chan struct{} // closed when the next task ends, if somebody waits
	tasks    int32         // goroutines that Close waits for
	handling int32         // how many of those run a handler
	heeding  int32         // how many wait for superseded
	asked    int32         // how many questions are not answered
	closed   bool
	renewing bool // a renewal of the incarnation that is held is in flight
	urgent   bool // another is due as soon as that is answered
}

// New makes a Session for the lease of that name at an authority. It makes no request. It
// refuses a nil authority, a name that is not a name ([lease.CheckName]) and Options that
// are out of range with an error that leads to a [*lease.FieldError].
func New(authority lease.Authority, name string, o *Options) (*Session, error) {
	if authority == nil {
		return nil, missing("New.authority")
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	o, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Session{name: name, authority: authority, holder: holder{o: o}, turn: make(chan struct{}, 1)}
	if s.o.Owner == "" {
		s.o.Owner = s.mint().String()
	}
	s.alarm = alarm{clock: s.o.Clock, ring: s.ring}
	return s, nil
}

// Name returns the name of the lease.
func (s *Session) Name() string { return s.name }

// Owner returns the owner under which the Session acquires.
func (s *Session) Owner() string { return s.o.Owner }

// CheckAlive reports whether the lease is certainly still held: whether the clock is before
// U. It takes no lock, waits for nothing and allocates nothing. For an infinite lease there
// is no U until a break is known; [Session.LastConfirmed] tells how old that knowledge is.
func (s *Session) CheckAlive() bool { return s.current() != nil }

// current returns the belief if it still holds.
func (s *Session) current() *belief {
	b := s.belief.Load()
	if b == nil || b.left(s.o, s.o.Clock.Now()) <= 0 {
		return nil
	}
	return b
}

// Token returns the fencing token of the incarnation that is held, or the empty Token.
func (s *Session) Token() lease.Token {
	if b := s.current(); b != nil {
		return b.token
	}
	return ""
}

// Until returns U on the Session's clock, and false if nothing is held. It is the zero time
// for an infinite lease that is not known to be breaking.
func (s *Session) Until() (time.Time, bool) {
	b := s.current()
	if b == nil {
		return time.Time{}, false
	}
	return b.until(), true
}

// LastConfirmed returns when the request was sent whose answer last showed that the lease is
// held, and false if nothing is held. In good order it is never older than RenewInterval and
// RequestTimeout together; once the lease is known to be breaking, it is when that was asked by
// whose answer the belief ends.
func (s *Session) LastConfirmed() (time.Time, bool) {
	b := s.current()
	if b == nil {
		return time.Time{}, false
	}
	return b.sent, true
}

// ID returns the ID that is in force while the lease is held, and otherwise the one that
// the next Acquire will propose: what a holder needs to know to hand the lease over to this
// Session. It changes when it is retired: after a release, a loss, or an Acquire that was
// abandoned. What is handed over to a retired ID nobody holds; the next Acquire of this Session
// that finds it in force releases it.
func (s *Session) ID() lease.ID {
	s.lock()
	defer s.unlock()
	s.shown = true
	return s.propose()
}

// OnLost registers f as [lease.Lease] says. A panic in f is logged; it stops nothing.
func (s *Session) OnLost(f func(error)) (stop func() bool) { return register(s, &s.onLost, f) }

// OnBreaking registers f to be called when the Session learns that its lease is breaking:
// somebody has revoked it, and it will be lost at until, on the Session's clock. It is the
// time to finish and to Release. If the break is shortened f is called again. An answer that
// takes longer than those before may end the lease sooner, by that time at most, without a call
// ([Session.Until]). Handlers run as those of OnLost do.
//
// The Session learns of a break when it next renews, at most RenewInterval and RequestTimeout
// later, or with Options.Watch as soon as it has asked. A break with less grace than that ends the
// lease before its holder knows: the fencing token alone protects what he writes meanwhile.
func (s *Session) OnBreaking(f func(until time.Time)) (stop func() bool) {
	return register(s, &s.onBreak, f)
}

func register[T any](s *Session, hs *handlers[T], f func(T)) (stop func() bool) {
	if f == nil {
		panic("session: a handler that is nil")
	}
	s.lock() // what is over by now is not for f
	defer s.unlock()
	h := hs.add(f)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return hs.remove(h)
	}
}

// lock takes mu and notices what the passing of time has done: with mu held, what is held
// is certain.
func (s *Session) lock() time.Time {
	if s.o == nil {
		panic("session: a Session that New did not make")
	}
	s.mu.Lock()
	now := s.o.Clock.Now()
	if reason, over := s.over(now); over {
		s.lose(reason, s.failed)
	}
	return now
}

// unlock frees mu and then does what has been put off until it is free.
func (s *Session) unlock() {
	effects := s.effects
	s.effects = nil
	s.mu.Unlock()
	runAll(effects)
}

// runAll calls all of fs, whatever becomes of one: a hook may panic or end its goroutine.
func runAll(fs []func()) {
	if len(fs) > 0 {
		defer runAll(fs[1:])
		fs[0]()
	}
}

// later puts off what calls out of the package.
func (s *Session) later(f func()) { s.effects = append(s.effects, f) }

// begin and finish enclose whatever Close waits for; begin is called with mu held, finish
// without.
func (s *Session) begin() { s.tasks++ }

func (s *Session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks--
	if s.settled != nil {
		close(s.settled)
		s.settled = nil
	}
}

// do sends one request, in the time that a request is given, whatever becomes of ctx. The
// time of sending is read before anything else.
func (s *Session) do(ctx context.Context, req lease.Request) (res lease.Result, sent, now time.Time, err error) {
	sent = s.o.Clock.Now()
	ctx, cancel := withTimeout(context.WithoutCancel(ctx), s.o.Clock, s.o.RequestTimeout)
	defer cancel()
	res, err = s.authority.Do(ctx, s.name, req)
	if res.Now.IsZero() {
		res = lease.Result{} // it shows nothing
	}
	if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew) {
		err = res.Record.Validate() // of one that is not, ErrCorrupt: what was granted is unknown
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause // a context cannot say by itself that the time of a Clock is up
	}
	return res, sent, s.o.Clock.Now(), err
}
