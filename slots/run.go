package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// A run is the state of one call of Run.
type run struct {
	*Slots
	f         func(context.Context, lease.Token) error
	me        waiter
	random    lease.ID          // from which me.id follows
	waiting   *member.Lease     // the place in the queue; nil if the call has not queued up
	queue     []string          // the waiters ahead at the last list
	freeSince map[int]time.Time // since which list a slot has been free, and the queue has not moved
	tasks     tasks.Group       // requests that have not returned
	requests  tasks.Count       // lists
	watches   watches           // while this call waits
	bad       time.Time         // since when all attempts have failed with permanent errors; zero if they have not
	unbroken  error             // of the breaks of the last look
	last      error             // of the last look
	failures  int               // of looks in a row
	told      bool              // whether the log has a record that it waits
	leaving   chan struct{}     // closed when the lease of the queue has been released; nil if that has not begun
}

// patience is for how many Intervals a slot may stay free before the next waiter tries it, in place of a
// waiter ahead that may have crashed.
const patience = 3

// look lists the leases and takes the next step. The result done reports whether f has returned.
func (r *run) look(ctx context.Context) (done bool, err error) {
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
	r.me.n, r.me.priority = n, r.priority()
	if r.waiting == nil {
		for _, w := range l.waiters {
			r.me.ticket = max(r.me.ticket, w.ticket)
		}
		r.me.ticket++
	}
	s := r.decide(r.me, l.waiters, l.locked, n, r.overdue(l, n))
	r.unbroken = nil
	if r.surplus.Load() {
		r.unbroken = r.breakSurplus(ctx)
	}
	if s.breaks >= 0 {
		h := l.locked[s.breaks]
		why := fmt.Sprintf("a waiter has priority %d, and the holder %d", r.me.priority, h.priority)
		r.unbroken = errors.Join(r.unbroken, r.breakSlot(ctx, s.breaks, h, why))
	}
	if s.take >= 0 {
		done, err := r.take(ctx, s.take)
		if done || err != nil {
			return done, err
		}
	}
	if w, ok := r.authority.(lease.Watcher); ok {
		r.watches.begin(ctx, w, r.o, &r.tasks, r.toWatch(s, n))
	}
	return false, r.queueUp(ctx)
}

// ask returns the results of a request that may never return.
func ask[T any](ctx context.Context, o *Options, g *tasks.Group, running *tasks.Count, do func(context.Context) (T, error)) (T, error) {
	return follow.Ask(ctx, o.Session.Clock, o.Session.RequestTimeout, g, running, do)
}

// toWatch returns the names of all slots for the first waiter, and for any other that of the waiter ahead of
// it, which leaves the queue when it has a slot.
func (r *run) toWatch(s step, n int) (names []string) {
	if s.rank > 0 {
		return []string{waiterName(r.prefix, s.ahead.number)}
	}
	for i := range n {
		names = append(names, slotName(r.prefix, i))
	}
	return names
}

// overdue returns how many of the waiters ahead have let free slots pass. A slot that is free at two lists may
// have been taken and given up in between. Then a waiter has left the queue, and the time begins again.
func (r *run) overdue(l listing, n int) int {
	now := r.o.Session.Clock.Now()
	var queue []string
	for _, w := range l.waiters {
		if w.id != r.me.id && before(w, r.me) {
			queue = append(queue, w.id)
		}
	}
	if slices.ContainsFunc(r.queue, func(id string) bool { return !slices.Contains(queue, id) }) {
		clear(r.freeSince)
	}
	r.queue = queue
	longest := time.Duration(0)
	for i := range n {
		if _, ok := l.locked[i]; ok {
			delete(r.freeSince, i)
		} else if since, ok := r.freeSince[i]; ok {
			longest = max(longest, now.Sub(since))
		} else {
			r.freeSince[i] = now
		}
	}
	return int(longest / (patience * r.o.Interval))
}

// queueUp makes the call a waiter that the others see, as it is now.
func (r *run) queueUp(ctx context.Context) error {
	if r.waiting == nil {
		l, err := r.lease(waiterName, r.random, r.me)
		if err != nil {
			return err
		}
		r.waiting = l
	}
	return r.waiting.Show(ctx, ownerOf(r.o.Session.Owner, r.me))
}

// slotKey is the key of the context value of Number.
type slotKey struct{}

// Number returns the number of the slot from the context of the function of [Slots.Run], or one that is
// derived from it. The number is at least 0, and ok is false in any other context. Each slot is a lease of its own, so only
// the tokens of the same slot can be compared: a resource needs one guard for each number.
func Number(ctx context.Context) (slot int, ok bool) {
	slot, ok = ctx.Value(slotKey{}).(int)
	return slot, ok
}

func (r *run) take(ctx context.Context, i int) (done bool, err error) {
	me := r.me
	me.priority = r.o.Priority // while it holds the slot, PriorityAfter may end
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
			r.leaving = make(chan struct{})
			go func() {
				defer close(r.leaving)
				_ = r.waiting.End(ctx)
			}()
		}
		return r.f(context.WithValue(ctx, slotKey{}, i), tok)
	}, &session.RunOptions{ReleaseTimeout: 2 * r.o.Session.RequestTimeout})
	if errors.Is(err, lease.ErrBroken) {
		r.explainBreak(ctx, i)
	}
	return done, err
}

// explainBreak logs why the lease of slot i was broken, as far as a list shows it.
func (r *run) explainBreak(ctx context.Context, i int) {
	l, err := ask(context.WithoutCancel(ctx), r.o, &r.tasks, &r.requests, r.list)
	by, why := "", "by an operator, or by a process that has ended"
	switch h, locked := l.locked[i]; {
	case err != nil:
		why = "unknown: " + err.Error()
	case i >= l.largest(r.process, int(r.n.Load())):
		why = "SetN: no process has so many slots"
	case locked && h.priority > r.me.priority:
		by, why = h.owner, "for a higher priority"
	default:
		for _, w := range l.waiters {
			if w.priority > r.me.priority {
				by, why = w.owner, "for a higher priority"
			}
		}
	}
	r.logger().Warn("slots: the lease of this slot was broken", "prefix", r.prefix, "slot", i, "for", by, "why", why)
}

// leave gives up the place in the queue.
func (r *run) leave(ctx context.Context) {
	if r.leaving != nil {
		<-r.leaving
	} else if r.waiting != nil {
		_ = r.waiting.End(ctx)
	}
}

// report logs the 1st, 2nd, 4th, 8th and so on of a series of errors, and the first success after them.
func (r *run) report(err error) {
	to := r.logger()
	switch r.last = err; {
	case err == nil && r.failures > 0:
		to.Info("slots: the authority answers again", "prefix", r.prefix, "failures", r.failures)
		r.failures = 0
	case err == nil && !r.told:
		r.told = true
		to.Info("slots: waiting for a slot", "prefix", r.prefix)
	case err != nil:
		if r.failures++; r.failures&(r.failures-1) == 0 { // a power of two
			to.Warn("slots: failed", "prefix", r.prefix, "failures", r.failures, "err", err)
		}
	}
}

// stopped returns one error that matches ctx.Err(), the cause of ctx and the last error, if there is one.
func (r *run) stopped(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); errors.Is(cause, err) {
		err = cause
	} else {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if r.last != nil {
		err = fmt.Errorf("%w; the last error: %w", err, r.last)
	}
	return err
}

// isPermanent reports whether all attempts have failed with permanent errors for 30 s.
func (r *run) isPermanent(err error) bool {
	if !errors.As(err, new(*lease.PermanentError)) {
		r.bad = time.Time{}
		return false
	}
	now := r.o.Session.Clock.Now()
	if r.bad.IsZero() {
		r.bad = now
	}
	return now.Sub(r.bad) >= 30*time.Second
}

// isHopeless reports whether a request that failed with err can never be granted.
func isHopeless(err error) bool {
	code := lease.CodeOf(err)
	badArgument := code >= lease.ErrAction && code <= lease.ErrOption
	return badArgument || code == lease.ErrClosed || code == lease.ErrEpochLimit || errors.Is(err, errors.ErrUnsupported)
}

// pause waits for d, or until a watched slot changes. The signals of renewals cost at most one list in a
// tenth of the Interval.
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
