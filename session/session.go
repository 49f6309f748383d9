package session

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/cancel"
	"github.com/fencedlease/lease/internal/dice"
	"github.com/fencedlease/lease/internal/handlers"
	"github.com/fencedlease/lease/internal/logqueue"
	"github.com/fencedlease/lease/internal/table"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/internal/timing"
)

// A Session is a holder of one lease: a [lease.TokenAcquirer] and [lease.Waiter] over any
// [lease.Authority]. It may be used by any number of goroutines and from inside its own
// handlers.
//
// A Session that holds goes on renewing until Release or Close, even if nothing refers to it
// any more. It can hold, lose and hold again any number of times. Each time is an incarnation
// with an ID of its own, and no event of one reaches another.
//
// A Session is the shell of a machine, which decides everything. The shell locks, reads the
// clock, gives the machine one input, takes the effects, unlocks, and performs them.
type Session struct {
	o         *Options // complete
	authority lease.Authority
	belief    atomic.Pointer[belief] // the machine's, for those that take no lock

	mu       sync.Mutex // held for one input of the machine, and for the three fields below it
	machine  machine
	calls    table.Table[caller] // that were not answered
	watching context.CancelFunc  // of the record of the incarnation that is held; may be nil

	// These have locks of their own. They are used with mu held, and without.
	contexts cancel.Set // of WhileHeld
	alarm    timing.Alarm
	onLost   handlers.Set[error]
	onBreak  handlers.Set[time.Time]
	log      logqueue.Queue
	tasks    tasks.Group // all goroutines but those of handlers
	looks    tasks.Count // at the record
	watches  tasks.Count // that were asked for and not begun
}

// New makes a Session for the lease of that name at an authority. It makes no request. It
// refuses a nil authority, a name that is not a name ([lease.CheckName]) and Options that
// are out of range with an error that leads to a [*lease.FieldError].
func New(authority lease.Authority, name string, o *Options) (*Session, error) {
	if authority == nil {
		return nil, lease.Missing("New.authority")
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	o, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, authority: authority}
	s.machine = machine{o: o, name: name, random: dice.Dice{Reader: &o.Rand}}
	if o.Owner == "" {
		id := s.machine.random.ID()
		s.machine.unique, o.Owner = true, hex.EncodeToString(id[:8])
	}
	s.alarm.Ring = func() { s.tasks.Run(func() { s.step((*machine).advance) }) } // Close waits for its hooks
	s.log.To = o.Logger
	return s, nil
}

// Name returns the name of the lease.
func (s *Session) Name() string { return s.machine.name }

// Owner returns the owner under which the Session acquires. The record of the lease carries it.
func (s *Session) Owner() string { return s.made().Owner }

// made returns the Options, and panics if New did not make the Session.
func (s *Session) made() *Options {
	if s.o == nil {
		panic("session: use of a Session that New did not make")
	}
	return s.o
}

// CheckAlive reports whether the lease is certainly still held: whether the clock is before
// U. It takes no lock, waits for nothing and allocates nothing. For an infinite lease there
// is no U until a break is known; [Session.LastConfirmed] tells how old that knowledge is.
func (s *Session) CheckAlive() bool {
	_, held := s.current()
	return held
}

// Token returns the fencing token of the incarnation that is held, or the empty Token.
func (s *Session) Token() lease.Token {
	b, _ := s.current()
	return b.token
}

// Until returns U on the Session's clock, and false if nothing is held. It is the zero time
// for an infinite lease that is not known to be breaking.
func (s *Session) Until() (time.Time, bool) {
	b, held := s.current()
	return b.until(), held
}

// LastConfirmed returns when the request was sent whose answer last showed that the lease is
// held, and false if nothing is held. While the authority answers, that is never longer ago than
// RenewInterval and RequestTimeout together. Once the lease is known to be breaking, it is when
// the request was sent whose answer the belief ends by.
func (s *Session) LastConfirmed() (time.Time, bool) {
	b, held := s.current()
	return b.sent, held
}

// current returns the belief if it still holds, and otherwise the zero one.
func (s *Session) current() (b belief, held bool) {
	p := s.belief.Load()
	if p == nil || p.left(s.o, s.o.Clock.Now()) <= 0 {
		return b, false
	}
	return *p, true
}

// step gives the machine one input and performs the effects. It is the only way to the machine. It
// must be called without locks.
func (s *Session) step(input func(m *machine, now time.Time)) {
	s.made()
	s.mu.Lock()
	now := s.o.Clock.Now()
	input(&s.machine, now)
	acts, answers := s.take(now)
	s.mu.Unlock()
	perform(acts, answers)
}

// jitter shortens a duration by up to half. It must be called without mu, which the source is read
// under.
func (s *Session) jitter(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.random.Shorten(d, 0.5)
}

// opError adds the operation and the name of the lease to an error, once.
func (s *Session) opError(op string, err error) error {
	if e := (*lease.OpError)(nil); errors.As(err, &e) {
		return err
	}
	return &lease.OpError{Op: op, Name: s.Name(), Err: err}
}
