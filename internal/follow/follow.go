// Package follow reads the record of a lease whenever it may have changed.
package follow

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/internal/timing"
)

// A Follower reads the record of a lease at every signal of a watch, or from time to time where
// there is none. Its fields must be set before it is used. It is used by one goroutine, which calls
// Watch, Look and Wait in a loop, and Unwatch in the end.
type Follower struct {
	Authority lease.Authority
	Name      string // of the lease
	Clock     lease.Clock
	Timeout   time.Duration                     // of a request
	Interval  time.Duration                     // from one look to the next without a watch, at most
	Retry     time.Duration                     // most that Wait adds to a shorter wait
	Jitter    func(time.Duration) time.Duration // shortens a duration at random
	Tasks     *tasks.Group                      // the owner's: so it waits for requests that hang
	Looks     *tasks.Count                      // of all Followers of the owner
	Watches   *tasks.Count                      // that were asked for and not begun

	changed  <-chan struct{} // signals of the watch; nil: there is none
	stop     func()          // frees what the watch needs; nil: there is none
	lost     bool            // the watch was just lost
	signaled bool            // the watch has signaled since the last look
	spurious bool            // but the look after that showed nothing new
	last     lease.Record    // that was read
	soonest  time.Duration   // until the next look
}

// mostAsking bounds the looks, and the watches, of an owner that have not returned.
const mostAsking = 16

// Watch begins a watch, if there is none and the authority is a lease.Watcher, and reports whether
// there is one. A watch that was just lost is not begun before the next Wait: the authority might
// lose it at once again.
func (f *Follower) Watch(ctx context.Context) bool {
	w, ok := f.Authority.(lease.Watcher)
	if ok && f.changed == nil && !f.lost {
		watching, stop := context.WithCancel(ctx)
		f.stop = stop
		f.changed, _ = ask(ctx, f, f.Watches, func(context.Context) (<-chan struct{}, error) { return w.Watch(watching, f.Name) })
		if f.changed == nil {
			f.Unwatch()
		}
	}
	f.lost = false
	return f.changed != nil
}

// Unwatch ends the watch, if there is one.
func (f *Follower) Unwatch() {
	if f.stop != nil {
		f.stop()
	}
	f.changed, f.stop = nil, nil
}

// Look reads the record. The result is not known if the authority does not show it.
func (f *Follower) Look(ctx context.Context) (res lease.Result, known bool) {
	res, known = ask(ctx, f, f.Looks, func(ctx context.Context) (lease.Result, error) {
		return lease.Inspect(ctx, f.Authority, f.Name)
	})
	known = known && !res.Now.IsZero()
	f.spurious = f.signaled && (!known || res.Record == f.last)
	f.last = res.Record
	return res, known
}

// Wait waits until the record may have changed, for d at most, or until ctx ends. It reports
// whether d has passed. Without a watch it waits for an Interval, jittered, at most. It waits a
// little longer than d, by a Retry at most, if it was often called for less than that, since some
// authorities always answer that a lease is about to end.
func (f *Follower) Wait(ctx context.Context, d time.Duration) (passed bool) {
	if f.changed == nil {
		d = min(d, f.Jitter(f.Interval))
	}
	if f.spurious { // some authorities signal what changes nothing
		pause := min(d, f.Jitter(f.Interval/10))
		_ = timing.Sleep(ctx, f.Clock, pause)
		if d != lease.Infinite {
			d -= pause
		}
	}
	if d >= f.Retry {
		f.soonest = 0
	}
	f.signaled = false
	select {
	case _, f.signaled = <-f.changed:
		if f.lost = !f.signaled; f.lost {
			f.Unwatch()
		}
	case <-timing.After(f.Clock, max(d, f.soonest)):
		f.soonest = min(max(2*f.soonest, time.Millisecond), f.Retry)
		return true
	case <-ctx.Done():
	}
	return false
}

// ask returns what do answers, if that is not an error and comes within a Timeout and before ctx
// ends. It waits no longer, even if do does not keep to its context.
func ask[T any](ctx context.Context, f *Follower, running *tasks.Count, do func(context.Context) (T, error)) (answer T, known bool) {
	ctx, cancel := timing.WithTimeout(ctx, f.Clock, f.Timeout)
	defer cancel()
	return tasks.Ask(ctx, f.Tasks, running, mostAsking, do)
}
