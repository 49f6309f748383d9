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
	"github.com/fencedlease/lease/internal/retry"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// Options configure [Slots]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Session has the options of every lease. Its Owner has at most 900 bytes. The Duration must be finite, and
	// TakeOver must not be set. Default: the defaults of package session.
	Session *session.Options

	// Priority orders the calls that wait for a slot, the highest Priority first. If all slots are taken, a call
	// breaks the lease of a holder with a lower Priority. Default: 0.
	Priority int

	// PriorityAfter is the time from the call of New until the Priority takes effect. Until then, a Priority
	// above 0 counts as 0. If a preferred leader crashes soon after each start, its Priority therefore never
	// takes effect, and another leader can go on with its work. If PriorityAfter is negative, the Priority
	// takes effect at once. Default: 4 × Session.Duration.
	PriorityAfter time.Duration

	// While Run waits for a slot, it lists the leases once in each Interval. If the authority is a
	// [lease.Watcher], the first call in the queue also watches the slots. Every later call watches its
	// predecessor in the queue. Default: Session.Duration/12.
	Interval time.Duration

	// Grace is how long a holder may take to stop when it must leave its slot. If a holder could not notice
	// the break of its lease within this time, a longer time is used instead. If the Grace is longer than
	// Session.Duration, only Session.Duration is used. Default: Session.Duration.
	Grace time.Duration

	// The hook Polled is called after each poll of Run or TryRun, with the result of the poll, unless the
	// poll ends the call of Run or TryRun. Several calls of Run can call Polled at the same time. Run does
	// not go on until Polled has returned. Default: none.
	Polled func(err error)
}

func (o *Options) complete() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	s, err := member.CompleteSession(c.Session)
	if err != nil {
		return nil, err
	}
	c.Session = s
	c.Interval = cmp.Or(c.Interval, min(max(s.Duration/12, time.Millisecond), member.MaxInterval))
	c.Grace = cmp.Or(c.Grace, s.Duration)
	c.PriorityAfter = cmp.Or(c.PriorityAfter, 4*min(s.Duration, member.MaxInterval))
	if c.Polled == nil {
		c.Polled = func(error) {}
	}
	if err := member.Check(append(member.SessionRules(s, 900, "the slot of a process that has crashed becomes free", "each call of Run has a slot of its own"),
		member.AtLeast("Interval", c.Interval, ""), member.AtMost("Interval", c.Interval), member.AtLeast("Grace", c.Grace, ""),
		member.AtLeast("PriorityAfter", cmp.Or(max(c.PriorityAfter, 0), time.Second), ", or negative"))); err != nil {
		return nil, err
	}
	c.Grace = member.BreakGrace(s, c.Grace)
	return &c, nil
}

// Slots is a set of N slots under a prefix. Its methods are safe for concurrent use.
type Slots struct {
	authority lease.Authority
	lister    lease.Lister
	prefix    string
	o         *Options
	process   string    // identifies this Slots among all with the same prefix
	began     time.Time // when New was called
	n         atomic.Int64
	excess    atomic.Bool // whether SetN was called and there may be slots to break
	announced announcement

	mu     sync.Mutex
	random jitter.Source // guarded by mu

	tasks    tasks.Group // requests of SetN that have not returned yet
	requests tasks.Count
}

// New returns n slots under the prefix, which usually ends with a slash. It sends no request. New returns a
// [*lease.FieldError] if an argument or an option is out of range, or if a is not a [lease.Lister].
func New(a lease.Authority, prefix string, n int, o *Options) (*Slots, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := checkN("New.n", n); err != nil {
		return nil, err
	}
	lister, err := member.CheckNew(a, prefix, waiterName("", member.Most), "free slots are found in the list of leases", o.Session)
	if err != nil {
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

// SetN changes the number of slots of this process. Call SetN in every process. As long as processes with a
// running call of Run have different numbers of slots, the largest of these numbers is used. SetN breaks the
// leases of the slots that no longer exist, with the grace period [Options].Grace. If a request fails, SetN
// returns the error. The breaks are then tried again by the calls of Run that wait for a slot, and by the
// next call of SetN.
func (s *Slots) SetN(ctx context.Context, n int) error {
	if err := checkN("SetN.n", n); err != nil {
		return err
	}
	s.n.Store(int64(n))
	s.excess.Store(true)
	return s.breakExcess(ctx)
}

// breakExcess announces the number of slots of this process. Then it determines the largest number of slots
// that any process has, and breaks the leases of the slots above that number. It stops when the store does
// not answer.
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
	// As long as a slot above n is leased, s.excess stays set. Another process may still have a number larger
	// than n. When the number of that process also becomes n, the leases of the slots above n must be broken.
	if err == nil && len(excess(l.locked, n)) == 0 && int(s.n.Load()) == n {
		s.excess.Store(false)
	}
	return err
}

// breakSlot breaks the lease of a slot, and logs this. If the slot was released meanwhile, breakSlot returns
// nil.
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

func (s *Slots) lease(name func(prefix string, i int) string, id lease.ID, w waiter) (*member.Lease, error) {
	o := *s.o.Session
	o.Owner = ownerOf(o.Owner, w)
	return member.New(s.authority, func(i int) string { return name(s.prefix, i) }, id, o)
}

// Run waits for a slot, calls f once, and frees the slot when f has returned. The fencing token of f is that
// of the slot, and can only be compared with other tokens of this slot: see [Number].
//
// As in [session.Run], the context of f ends before the slot is lost, for example because its lease could not
// be renewed. The error of Run then matches [lease.ErrLost]. If a call with a higher Priority needs the slot,
// or SetN removes it, the error also matches [lease.ErrBroken]. To find out whether Run has ended because of
// an orderly stop, pass the error to [session.Stopped].
//
// If ctx ends while Run waits, Run returns an error that matches the cause of ctx. If the last request has
// failed, the error of Run also matches the error of this request. Run returns an error at once if the store
// can never grant a request, for example because the store is closed or does not support the Duration. If the
// store fails with permanent errors ([lease.Permanent]) for 30 s while Run waits, Run returns the last of
// them. After any other error, Run tries again. Session.Logger receives the 1st, 2nd, 4th, 8th and so on of a
// series of errors at Warn, and at Info that Run waits.
func (s *Slots) Run(ctx context.Context, f func(ctx context.Context, tok lease.Token) error) error {
	if f == nil {
		return fields.Missing("Run.f")
	}
	_, err := s.run(ctx, f, false)
	return err
}

// TryRun is like [Slots.Run], but returns (false, nil) if other holders have all slots. If TryRun gets a
// slot, it calls f and returns true. If a request fails, TryRun returns false and the error. If a slot is
// free, but a call ahead in the queue should take it, TryRun waits in the queue for an Interval or more.
// TryRun never breaks a lease to get a slot, even if its Priority is higher.
func (s *Slots) TryRun(ctx context.Context, f func(ctx context.Context, tok lease.Token) error) (ran bool, err error) {
	if f == nil {
		return false, fields.Missing("TryRun.f")
	}
	return s.run(ctx, f, true)
}

func (s *Slots) run(ctx context.Context, f func(context.Context, lease.Token) error, once bool) (ran bool, err error) {
	r := &run{Slots: s, f: f, random: s.drawID(), watches: watches{changed: make(chan struct{}, 1)}}
	r.machine = machine{o: s.o, once: once, began: s.began, me: waiter{id: member.ID(r.random, s.prefix), process: s.process}, freeSince: map[int]time.Time{}}
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
			return false, retry.Stopped(ctx, r.outage.Last)
		case once && (err != nil || r.full):
			return false, err
		case r.outage.Over(s.o.Session.Clock.Now(), err):
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
