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
// A Session that holds goes on renewing until Release or Close, even if nothing refers to it
// any more. It can hold, lose and hold again any number of times. Each time is an incarnation
// with an ID of its own, and no event of one reaches another.
//
// A Session is the shell of a machine, which decides everything. The shell locks, reads the
// clock, gives the machine one input, takes the effects, unlocks, and performs them.
type Session struct {
	name      string
	o         *Options // complete
	authority lease.Authority
	belief    atomic.Pointer[belief] // the machine's, for those that take no lock

	mu       sync.Mutex // held for one input of the machine, and for the fields below
	machine  machine
	alarm    alarm
	calls    map[uint64]*waiter // those that were not answered
	last     uint64             // number of the last call
	contexts map[*heldContext]struct{}
	watching context.CancelFunc // of the record of the incarnation that is held; may be nil
	onLost   handlers[error]
	onBreak  handlers[time.Time]
	tasks    tasks
	looks    int // that have not returned
	watches  int // that were asked for and not begun
	log      logQueue
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
	s := &Session{name: name, o: o, authority: authority, log: logQueue{to: o.Logger}}
	s.machine = machine{o: o, name: name, random: dice{o.Rand}}
	if o.Owner == "" {
		s.machine.unique, o.Owner = true, s.machine.random.id().String()
	}
	s.alarm = alarm{clock: o.Clock, ring: s.ring}
	return s, nil
}

// Name returns the name of the lease.
func (s *Session) Name() string { return s.name }

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
// held, and false if nothing is held. While the authority answers, that is never longer ago than
// RenewInterval and RequestTimeout together. Once the lease is known to be breaking, it is when
// the request was sent whose answer the belief ends by.
func (s *Session) LastConfirmed() (time.Time, bool) {
	b := s.current()
	if b == nil {
		return time.Time{}, false
	}
	return b.sent, true
}

// step gives the machine one input and performs what that leads to. It is the only way to the
// machine. It must be called without locks.
func (s *Session) step(input func(m *machine, now time.Time)) {
	s.made()
	s.mu.Lock()
	now := s.o.Clock.Now()
	input(&s.machine, now)
	p := s.take(now)
	s.mu.Unlock()
	p.perform(s)
}

// ring is called when the alarm rings.
func (s *Session) ring() {
	s.mu.Lock()
	s.alarm.at = time.Time{}
	s.tasks.begin() // Close waits for hooks that are called now
	s.mu.Unlock()
	defer s.finish()
	s.step((*machine).advance)
}

// opError adds the operation and the name of the lease to an error, once.
func (s *Session) opError(op string, err error) error {
	if e := (*lease.OpError)(nil); errors.As(err, &e) {
		return err
	}
	return &lease.OpError{Op: op, Name: s.name, Err: err}
}
