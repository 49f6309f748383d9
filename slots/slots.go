package slots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// Options configure [Slots]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Session has the options of every lease. Its Owner has at most 900 bytes. Duration must be finite,
	// and TakeOver must not be set. Default: the defaults of package session.
	Session *session.Options

	// Priority orders the calls that wait: the highest Priority is first. If all slots are taken, a call makes
	// a holder with a lower Priority stop. Default: 0.
	Priority int

	// PriorityAfter is how long after New a Priority above 0 takes effect; until then it counts as 0. So a
	// process that crashes soon after each start does not stop one that works. A negative value means that
	// the Priority takes effect at once. Default: 4 × Session.Duration.
	PriorityAfter time.Duration

	// Interval is the time between two lists while Run waits. If the authority is a [lease.Watcher], the
	// first call in the queue also watches the slots, and each other call watches the one ahead of it.
	// Default: Session.Duration/12.
	Interval time.Duration

	// Grace is how long a holder that must leave its slot may take to stop. It is at least the time that
	// the holder needs to learn of the break, and at most Session.Duration. Default: Session.Duration.
	Grace time.Duration

	// Polled is called after each poll that has not ended Run or TryRun, with the error of the poll, or with nil.
	// Several calls of Run can call it at once, and each waits until it returns. Default: none.
	Polled func(err error)
}

func (o *Options) complete() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	s, err := c.Session.Complete()
	if err != nil {
		return nil, err
	}
	c.Session = s
	if c.Interval == 0 {
		c.Interval = min(max(s.Duration/12, time.Millisecond), member.MaxInterval)
	}
	if c.Grace == 0 {
		c.Grace = s.Duration
	}
	if c.Polled == nil {
		c.Polled = func(error) {}
	}
	if c.PriorityAfter == 0 {
		c.PriorityAfter = 4 * min(s.Duration, member.MaxInterval)
	}
	if err := member.Check(append(member.SessionRules(s, 900, "the slot of a process that has crashed becomes free", "each call of Run has a slot of its own"),
		member.AtLeast("Interval", c.Interval, ""), member.AtMost("Interval", c.Interval), member.AtLeast("Grace", c.Grace, ""),
		member.AtLeast("PriorityAfter", cmp.Or(max(c.PriorityAfter, 0), time.Second), ", or negative"))); err != nil {
		return nil, err
	}
	c.Grace = member.BreakGrace(s, c.Grace)
	return &c, nil
}

// Slots are N slots under a prefix. The methods are safe for concurrent use.
type Slots struct {
	authority lease.Authority
	lister    lease.Lister
	prefix    string
	o         *Options
	process   string    // identifies this Slots among those of the prefix
	began     time.Time // when New was called
	n         atomic.Int64
	excess    atomic.Bool // SetN was called, and there may be slots to break
	announced announcement

	mu     sync.Mutex
	random jitter.Source // guarded by mu

	tasks    tasks.Group // requests of SetN that have not returned
	requests tasks.Count
}

// New returns n slots under the prefix, which usually ends with a slash. It sends no request. New returns a
// [*lease.FieldError] if an argument or an option is out of range, or if a is not a [lease.Lister].
func New(a lease.Authority, prefix string, n int, o *Options) (*Slots, error) {
	lister, err := member.CheckNew(a, prefix, waiterName("", member.Most), "free slots are found in the list of leases")
	if err != nil {
		return nil, err
	}
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	if err := checkN("New.n", n); err != nil {
		return nil, err
	}
	if err := member.SetOwner(a, prefix, o.Session); err != nil {
		return nil, err
	}
	s := &Slots{authority: a, lister: lister, prefix: prefix, o: o, random: jitter.Source{Reader: &o.Session.Rand}}
	s.announced.turn = make(chan struct{}, 1)
	s.process, s.began = member.ID(s.random.ID(), prefix), o.Session.Clock.Now()
	s.n.Store(int64(n))
	return s, nil
}

func checkN(field string, n int) error {
	if n < 1 || n > 10_000 {
		return &lease.FieldError{Field: field, Value: fmt.Sprint(n), Bound: "must be from 1 to 10,000", Code: lease.ErrOption}
	}
	return nil
}

// SetN changes the number of slots of this process. Call SetN in every process: if the processes with a
// running call of Run know different numbers, the largest one counts. If SetN finds leases of slots above
// that number, it breaks them, with the Grace of the Options. If a request fails, it returns the error;
// the waiting calls of Run then try again, and so does the next SetN.
func (s *Slots) SetN(ctx context.Context, n int) error {
	if err := checkN("SetN.n", n); err != nil {
		return err
	}
	s.n.Store(int64(n))
	s.excess.Store(true)
	return s.breakExcess(ctx)
}

// breakExcess announces the number of slots, and breaks those above the largest number that a process
// knows of. It ends at the first break that is not answered.
func (s *Slots) breakExcess(ctx context.Context) (err error) {
	n := int(s.n.Load())
	if err := s.announce(ctx, n); err != nil {
		return err
	}
	l, err := ask(ctx, s.o, &s.tasks, &s.requests, s.list)
	if err != nil {
		return err
	}
	largest := l.largest(s.process, n)
	for _, i := range excess(l.locked, largest) {
		e := s.breakSlot(ctx, i, l.locked[i], fmt.Sprintf("SetN: no process has more than %d slots", largest))
		err = errors.Join(err, e)
		if errors.Is(e, follow.ErrSilent) {
			break
		}
	}
	// While slots above n are leased, s.excess stays set: if another process still knows a larger number, it may
	// be told of n later, and the slots above n must then be broken.
	if err == nil && len(excess(l.locked, n)) == 0 && int(s.n.Load()) == n {
		s.excess.Store(false)
	}
	return err
}

// breakSlot breaks the lease of a slot, and logs that. A refusal, such as after a release, is no error.
func (s *Slots) breakSlot(ctx context.Context, i int, h holder, why string) error {
	_, err := ask(ctx, s.o, &s.tasks, &s.requests, func(ctx context.Context) (time.Duration, error) {
		return lease.Break(ctx, s.authority, slotName(s.prefix, i), lease.Grace(s.o.Grace))
	})
	switch {
	case err == nil:
		s.logger().Info("slots: broke the lease of a slot", "prefix", s.prefix, "slot", i, "holder", h.owner, "why", why)
	case lease.CodeOf(err).Refusal():
		err = nil
	}
	return err
}

func (s *Slots) logger() *slog.Logger { return cmp.Or(s.o.Session.Logger, slog.Default()) }

func (s *Slots) drawID() lease.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.ID()
}

// lease returns a Lease that shows w.
func (s *Slots) lease(name func(prefix string, i int) string, id lease.ID, w waiter) (*member.Lease, error) {
	o := *s.o.Session
	o.Owner = ownerOf(o.Owner, w)
	return member.New(s.authority, func(i int) string { return name(s.prefix, i) }, id, o)
}

// Run waits for a slot, calls f once, and frees the slot when f has returned. The token is that of the
// slot: see [Number]. As in [session.Run], the context of f ends before the slot is lost, and the error of
// Run then matches [lease.ErrLost]. If a process with a higher Priority needs the slot, or SetN removes it,
// the error also matches [lease.ErrBroken]. [session.Stopped] tells whether the error is that of an orderly
// stop.
//
// If ctx ends while Run waits, Run returns an error that matches the cause of ctx, and also the store's
// last error if the last request failed. It returns an error at once if a request can never be granted, for
// example because the store is closed, or does not grant the Duration. If the store fails with permanent
// errors ([lease.Permanent]) for 30 s while Run waits, Run returns the last of them. After any other error,
// also of a break, it tries again. Session.Logger gets the 1st, 2nd, 4th, 8th and so on of a series of
// errors at Warn, and at Info that Run waits.
func (s *Slots) Run(ctx context.Context, f func(ctx context.Context, tok lease.Token) error) error {
	if f == nil {
		return fields.Missing("Run.f")
	}
	_, err := s.run(ctx, &run{f: f})
	return err
}

// TryRun is like [Slots.Run], but does not wait for a slot that another holder has. It calls f and returns
// true if it gets a slot. It returns (false, nil) if a list shows that others have all slots, and (false,
// err) if a request fails. If a slot is free but a call ahead in the queue will take it, TryRun waits in
// the queue, for an Interval or more. It breaks no lease to get a slot, whatever its Priority.
func (s *Slots) TryRun(ctx context.Context, f func(ctx context.Context, tok lease.Token) error) (ran bool, err error) {
	if f == nil {
		return false, fields.Missing("TryRun.f")
	}
	return s.run(ctx, &run{f: f, once: true})
}

func (s *Slots) run(ctx context.Context, r *run) (ran bool, err error) {
	r.Slots, r.random, r.watches.changed = s, s.drawID(), make(chan struct{}, 1)
	r.machine = machine{o: s.o, began: s.began, me: waiter{id: member.ID(r.random, s.prefix), process: s.process}, freeSince: map[int]time.Time{}}
	s.announced.runs.Add(1)
	defer s.announced.leave(ctx)
	defer r.leave(ctx)
	defer r.watches.end()
	for {
		began := s.o.Session.Clock.Now()
		done, err := r.poll(ctx)
		switch {
		case done:
			return true, err
		case ctx.Err() != nil:
			return false, r.outage.stopped(ctx)
		case r.once && (err != nil || r.full):
			return false, err
		case r.outage.isPermanent(err, s.o.Session.Clock.Now()), isHopeless(err):
			return false, err
		}
		err = cmp.Or(err, r.unbroken)
		s.o.Polled(err)
		r.outage.report(s.logger(), s.prefix, err)
		s.mu.Lock()
		pause := s.random.Shorten(s.o.Interval, 0.1)
		s.mu.Unlock()
		r.pause(ctx, pause-s.o.Session.Clock.Now().Sub(began))
	}
}
