package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/internal/logqueue"
	"github.com/fencedlease/lease/internal/notify"
	"github.com/fencedlease/lease/internal/tasks"
)

// A Session is a holder of one lease. A Session acquires its lease from a [lease.Authority], renews the lease
// in the background, and releases it. A Session implements [lease.TokenAcquirer] and [lease.Waiter]. All
// methods are safe for use by several goroutines at once. Handlers may call the methods of a Session too.
//
// A Session renews its lease until Release or Close is called, even if the program no longer refers to the
// Session. After a release or a loss, the Session can acquire the lease again, any number of times. Each
// grant begins a new term with an ID of its own, so that a late answer to a request of an earlier term does
// not affect the current term.
type Session struct {
	// The field machine is the state machine that makes all decisions of a Session. For each input, such as a
	// method call or an answer, the Session locks the mutex mu and passes the input to the machine. The
	// machine returns a list of effects, which the Session performs after it has unlocked the mutex.

	o         *Options // with the defaults filled in, except for a nil Logger, which means slog.Default() at each record
	authority lease.Authority
	name      string                        // the name of the lease
	belief    atomic.Pointer[holder.Belief] // what the machine knows about the held term; read without mu

	machineOptions holder.Options // never changed

	mu       sync.Mutex // locked during each input of the machine; guards the fields of this block
	machine  holder.Machine
	random   holder.Random
	calls    []pendingCall      // the calls that have no outcome yet
	lastCall uint64             // the number of the last call
	watching context.CancelFunc // stops the watch of the held record; nil if no record is watched
	renewing *tasks.Patience    // ends the wait of the renewal that is in flight; nil if none is
	last     *holder.Belief     // the last held term, whose token is logged with a release; nil if there was none
	lockedBy string             // the owner in the answer to the last Acquire that was not granted; empty if the answer had none

	stopping  *lease.LostError // the last stop window of the held term; nil if there was none
	takenOver *lease.LostError // the last loss to a Session that took the lease over; nil if there was no such loss

	running atomic.Bool // whether a call of Run or TryRun uses the Session

	// The following fields have locks of their own, which may be taken while mu is held. To avoid a deadlock,
	// no goroutine locks mu while it holds one of these locks. For the same reason, no goroutine that holds
	// mu calls tasks.Run, tasks.Close or the function that alarm.Set returns.
	contexts notify.ContextSet // the contexts of WhileHeld
	alarm    clock.Alarm
	onLost   notify.Handlers[error]
	onBreak  notify.Handlers[time.Time]
	log      logqueue.Queue
	tasks    tasks.Group // all goroutines except those of handlers
	reads    tasks.Count // the reads of the record that are running
	watches  tasks.Count // the watches that were requested and have not begun
}

// New returns a Session for the lease with the given name at the given authority. New sends no request. New
// returns an error if authority is nil, if name is malformed ([lease.CheckName]), or if an option is out of
// range. The error wraps a [*lease.FieldError].
func New(authority lease.Authority, name string, o *Options) (*Session, error) {
	if authority == nil {
		return nil, fields.Missing("New.authority")
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	o, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, authority: authority, name: name}
	s.random = jitter.Source{Reader: &o.Rand}
	unique := o.Owner == ""
	if unique {
		o.Owner = defaultOwner(s.random.ID())
	}
	s.machineOptions = o.machine()
	s.machine = holder.New(&s.machineOptions, name, s.random, unique)
	s.alarm.Func = func() {
		s.tasks.Run(func() { s.handle(nil).performHere() }) // as a task, so that Close waits for the hooks that the alarm calls
	}
	s.log.To = o.Logger
	return s, nil
}

// Name returns the name of the lease.
func (s *Session) Name() string { return s.name }

// Owner returns the owner that the record of the lease shows while the Session holds it.
func (s *Session) Owner() string { return s.checkedOptions().Owner }

// checkedOptions returns the Options. It panics if the Session was not created by New.
func (s *Session) checkedOptions() *Options {
	if s.o == nil {
		panic("session: use of a Session that New did not make")
	}
	return s.o
}

// CheckAlive reports whether the lease is certainly still held: whether the clock has not yet reached U, the
// time until which the Session may rely on the lease. CheckAlive takes no lock, does not block and allocates
// nothing. An infinite lease has no such time U until the Session learns of a break. To see when an infinite
// lease was last confirmed, use [Session.LastConfirmed].
func (s *Session) CheckAlive() bool {
	_, held := s.current()
	return held
}

// Token returns the fencing token of the held term, or the empty Token if the lease is not held.
func (s *Session) Token() lease.Token {
	b, _ := s.current()
	return b.Token
}

// The method Until returns the time on the Session's clock at which CheckAlive turns false. The package
// documentation calls this time U. If the lease is not held, the second result is false. For an infinite
// lease, the time is zero until the Session learns of a break.
func (s *Session) Until() (time.Time, bool) {
	b, held := s.current()
	return b.Until(), held
}

// LastConfirmed returns the time at which the Session sent a request: the last request whose answer confirmed
// that the Session holds the lease. While the lease is breaking, the result is the time at which the Session
// sent the request whose answer determines U. If the lease is not held, the second result is false.
//
// If the authority answers every request, the returned time is never far in the past. With the default
// options, it is at most 15 s ago: one RenewInterval of 10 s plus one RequestTimeout of 5 s. If RenewInterval
// is shorter than RequestTimeout, the returned time is at most two RequestTimeouts ago. If a renewal has to
// wait in the process because the server is busy, the duration of this wait must be added to these bounds.
func (s *Session) LastConfirmed() (time.Time, bool) {
	b, held := s.current()
	return b.Sent, held
}

// current returns what the Session knows about the held term, or false if there is no held term.
func (s *Session) current() (b holder.Belief, held bool) {
	p := s.belief.Load()
	if p == nil || p.Left(&s.machineOptions, s.o.Clock.Now()) <= 0 {
		return b, false
	}
	return *p, true
}

// step gives the state machine one input and performs the effects. The caller must hold no lock.
func (s *Session) step(input func(m *holder.Machine, now time.Time)) { s.handle(input).perform() }

// The method s.handle gives the state machine one input. The returned actions carry out the effects of this
// input.
func (s *Session) handle(input func(m *holder.Machine, now time.Time)) *actions {
	s.checkedOptions()
	s.mu.Lock()
	now := s.o.Clock.Now()
	s.machine.Lend(spareEffects.Get().(*holder.Effects))
	s.machine.Handle(now, input)
	p := s.take(now)
	s.mu.Unlock()
	return p
}

// jitter shortens a duration at random by up to half.
func (s *Session) jitter(d time.Duration) time.Duration { return s.shorten(d, 0.5) }

// shorten shortens a duration at random, by at most the given fraction. It locks mu, which protects the
// source of the random numbers.
func (s *Session) shorten(d time.Duration, part float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Shorten(d, part)
}

// opError wraps err in a [lease.OpError] with the operation and the name of the lease, unless err is a loss,
// or already contains an OpError.
func (s *Session) opError(op string, err error) error {
	if _, isLoss := err.(*lease.LostError); isLoss || errors.As(err, new(*lease.OpError)) {
		return err
	}
	return &lease.OpError{Op: op, Name: s.Name(), Err: err}
}
