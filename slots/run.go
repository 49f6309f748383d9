package slots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/numbered"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/internal/timing"
	"github.com/fencedlease/lease/session"
)

// A run is the state of one call of Run.
type run struct {
	*Slots
	f        func(context.Context, lease.Token) error
	me       waiter
	random   lease.ID        // from which me.id follows
	waiting  *numbered.Lease // the place in the queue; nil if the call has not queued up
	freeFor  map[int]int     // for how many lists a slot has been free
	tasks    tasks.Group     // requests that have not returned
	requests tasks.Count     // lists and breaks
	watches  watches         // while this call waits
	bad      time.Time       // since when all attempts have failed with permanent errors; zero if they have not
	unbroken error           // of the breaks of the last look
	last     error           // of the last look
	failures int             // of looks in a row
	told     bool            // whether the log has a record that it waits
	leaving  chan struct{}   // closed when the lease of the queue has been released; nil if that has not begun
}

// patience is how many lists a free slot may stay free before the next waiter tries it, in place of a waiter
// ahead that may have crashed.
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
	if r.waiting == nil {
		for _, w := range l.waiters {
			r.me.ticket = max(r.me.ticket, w.ticket)
		}
		r.me.ticket++
	}
	s := r.decide(r.me, l.waiters, l.locked, n, r.overdue(l.locked, n))
	r.unbroken = r.breakAll(ctx, &r.tasks, &r.requests, s.breaks)
	if s.take >= 0 {
		done, err := r.take(ctx, s.take)
		if done || err != nil {
			return done, err
		}
	}
	if w, ok := r.authority.(lease.Watcher); ok {
		r.watches.begin(ctx, w, r.o, &r.tasks, r.toWatch(s, n))
	}
	return false, r.queue(ctx)
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

// overdue returns how many of the waiters ahead have let free slots pass.
func (r *run) overdue(locked map[int]holder, n int) int {
	longest := 0
	for i := range n {
		if _, ok := locked[i]; ok {
			delete(r.freeFor, i)
		} else {
			r.freeFor[i]++
			longest = max(longest, r.freeFor[i])
		}
	}
	return longest / patience
}

// queue makes the call a waiter that the others see.
func (r *run) queue(ctx context.Context) error {
	if r.waiting != nil {
		return nil
	}
	l, err := numbered.New(r.random, func(i int) (*session.Session, error) { return r.session(waiterName(r.prefix, i)) })
	if err != nil {
		return err
	}
	r.waiting = l
	_, err = l.Acquire(ctx)
	return err
}

func (r *run) session(name string) (*session.Session, error) {
	o := *r.o.Session
	o.Owner = ownerOf(o.Owner, r.me)
	return session.New(r.authority, name, &o)
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
	s, err := r.session(slotName(r.prefix, i))
	if err != nil {
		return false, err
	}
	defer func() { _ = numbered.Close(ctx, s, r.o.Session) }()
	_, err = session.TryRun(ctx, numbered.Member{Session: s}, func(ctx context.Context, tok lease.Token) error {
		if i >= int(r.n.Load()) {
			return nil // SetN has removed the slot meanwhile
		}
		done = true
		r.watches.end()
		if r.waiting != nil {
			r.leaving = make(chan struct{})
			go func() {
				defer close(r.leaving)
				_ = numbered.Close(ctx, r.waiting.Session, r.o.Session)
			}()
		}
		return r.f(context.WithValue(ctx, slotKey{}, i), tok)
	}, &session.RunOptions{ReleaseTimeout: 2 * r.o.Session.RequestTimeout})
	return done, err
}

// leave gives up the place in the queue.
func (r *run) leave(ctx context.Context) {
	if r.leaving != nil {
		<-r.leaving
	} else if r.waiting != nil {
		_ = numbered.Close(ctx, r.waiting.Session, r.o.Session)
	}
}

// report logs the 1st, 2nd, 4th, 8th and so on of a series of errors, and the first success after them.
func (r *run) report(err error) {
	to := r.o.Session.Logger
	if to == nil {
		to = slog.Default()
	}
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
	if timing.Sleep(ctx, r.o.Session.Clock, max(0, least)) != nil {
		return
	}
	select {
	case <-r.watches.changed:
	case <-timing.After(r.o.Session.Clock, max(0, d-least)):
	case <-ctx.Done():
	}
}
