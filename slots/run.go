package slots

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/retry"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// A run is a call of Run. It carries out what its machine decides.
type run struct {
	*Slots
	machine  machine
	f        func(context.Context, lease.Token) error
	full     bool           // whether this is a call of TryRun, and the last list showed no free slot
	random   lease.ID       // machine.me.id is computed from it
	waiting  *member.Lease  // the place in the queue; nil before the call has queued up
	leaving  sync.WaitGroup // while the place in the queue is released during the work
	watches  watches        // while this call waits
	tasks    tasks.Group    // requests that have not returned yet
	requests tasks.Count    // lists
	unbroken error          // of breaks in the last poll
	outage   outage
}

// poll lists the leases and takes the next step. It returns true if f has been called and has returned.
func (r *run) poll(ctx context.Context) (done bool, err error) {
	r.watches.drain()
	if r.waiting != nil && !r.waiting.CheckAlive() {
		if _, err := r.waiting.Acquire(ctx); err != nil {
			return false, err
		}
	}
	l, err := ask(ctx, r.o, &r.tasks, &r.requests, r.list)
	if err != nil {
		return false, err
	}
	n := int(r.n.Load())
	s := r.machine.poll(l, n, r.o.Session.Clock.Now())
	r.unbroken = nil
	if r.full = s.full && r.machine.once; r.full {
		return false, nil
	}
	if r.excess.Load() {
		r.unbroken = r.breakExcess(ctx)
	}
	if s.breaks >= 0 {
		r.unbroken = errors.Join(r.unbroken, r.breakSlot(ctx, s.breaks, l.locked[s.breaks], s.why))
	}
	if s.take >= 0 {
		done, err := r.take(ctx, s.take)
		if done || err != nil {
			return done, err
		}
	}
	if w, ok := r.authority.(lease.Watcher); ok {
		r.watches.begin(ctx, w, r.o, &r.tasks, s.toWatch(r.prefix, n))
	}
	return false, r.queueUp(ctx)
}

// ask sends a request, and waits for its result for at most the RequestTimeout.
func ask[T any](ctx context.Context, o *Options, g *tasks.Group, running *tasks.Count, do func(context.Context) (T, error)) (T, error) {
	return follow.Ask(ctx, o.Session.Clock, o.Session.RequestTimeout, g, running, do)
}

func (r *run) queueUp(ctx context.Context) error {
	if r.waiting == nil {
		l, err := r.lease(waiterName, r.random, r.machine.me)
		if err != nil {
			return err
		}
		r.waiting, r.machine.queued = l, true
	}
	return r.waiting.Show(ctx, ownerOf(r.o.Session.Owner, r.machine.me))
}

// A slotKey is the key of the context value that Number and Session read.
type slotKey struct{}

type slot struct {
	number  int
	session *session.Session
}

// Number returns the number of the slot, which is at least 0. The argument must be the context that
// [Slots.Run] passes to its function, or a context derived from it. For any other context, the second result
// is false. Only tokens of the same slot can be compared, because each slot is a lease of its own. So a
// resource needs one guard for each slot number.
func Number(ctx context.Context) (number int, ok bool) {
	s, ok := ctx.Value(slotKey{}).(slot)
	return s.number, ok
}

// Session returns the Session that holds the lease of the slot. The argument must be the context that
// [Slots.Run] passes to its function, or a context derived from it, otherwise Session returns nil. The
// Session's method Until says how long the slot is certainly held, OnBreaking reports a break at once, and
// Release ends the context and frees the slot.
func Session(ctx context.Context) *session.Session {
	s, _ := ctx.Value(slotKey{}).(slot)
	return s.session
}

func (r *run) take(ctx context.Context, i int) (done bool, err error) {
	me := r.machine.me
	me.priority = r.o.Priority // PriorityAfter may pass while this call holds the slot
	o := *r.o.Session
	o.Owner = ownerOf(o.Owner, me)
	s, err := session.New(r.authority, slotName(r.prefix, i), &o)
	if err != nil {
		return false, err
	}
	defer func() { _ = member.Close(ctx, s, r.o.Session) }()
	_, err = session.TryRun(ctx, member.Member{Session: s}, func(ctx context.Context, tok lease.Token) error {
		if i >= int(r.n.Load()) {
			return nil // SetN has removed the slot meanwhile
		}
		done = true
		r.watches.end()
		if r.waiting != nil {
			waiting := r.waiting
			r.waiting = nil
			r.leaving.Go(func() { _ = waiting.End(ctx) })
		}
		return r.f(context.WithValue(ctx, slotKey{}, slot{i, s}), tok)
	}, &session.RunOptions{ReleaseTimeout: 2 * r.o.Session.RequestTimeout})
	if errors.Is(err, lease.ErrBroken) {
		r.explainBreak(ctx, i)
	}
	return done, err
}

// explainBreak logs that the lease of slot i was broken, and the reason as far as a list of the leases shows
// it.
func (r *run) explainBreak(ctx context.Context, i int) {
	l, err := ask(context.WithoutCancel(ctx), r.o, &r.tasks, &r.requests, r.list)
	by, why := "", "by an operator, or by a process that has ended"
	switch h, locked := l.locked[i]; {
	case err != nil:
		why = "unknown: " + err.Error()
	case i >= l.largest(r.process, int(r.n.Load())):
		why = "SetN: no process has so many slots"
	case locked && h.priority > r.machine.me.priority:
		by, why = h.owner, "for a higher priority"
	default:
		for _, w := range l.waiters {
			if w.priority > r.machine.me.priority {
				by, why = w.owner, "for a higher priority"
			}
		}
	}
	r.logger().Warn("slots: the lease of this slot was broken", "prefix", r.prefix, "slot", i, "for", by, "why", why)
}

func (r *run) leave(ctx context.Context) {
	if r.waiting != nil {
		_ = r.waiting.End(ctx)
	}
	r.leaving.Wait()
}

type outage struct {
	retry.Series
	failures int  // in a row
	told     bool // whether the log has a record that Run waits
}

func (o *outage) report(to *slog.Logger, prefix string, err error) {
	switch o.Last = err; {
	case err == nil && o.failures > 0:
		to.Info("slots: the authority answers again", "prefix", prefix, "failures", o.failures)
		o.failures = 0
	case err == nil && !o.told:
		o.told = true
		to.Info("slots: waiting for a slot", "prefix", prefix)
	case err != nil:
		if o.failures++; o.failures&(o.failures-1) == 0 { // a power of two
			to.Warn("slots: failed", "prefix", prefix, "failures", o.failures, "err", err)
		}
	}
}

// The method pause waits for d, or until a watched lease changes. It waits for at least a tenth of the
// Interval. Without this minimum, this process would list the leases too often if a watched lease changes
// often.
func (r *run) pause(ctx context.Context, d time.Duration) {
	least := min(d, r.o.Interval/10)
	if clock.Sleep(ctx, r.o.Session.Clock, max(0, least)) != nil {
		return
	}
	select {
	case <-r.watches.changed:
	case <-clock.After(r.o.Session.Clock, max(0, d-least)):
	case <-ctx.Done():
	}
}
