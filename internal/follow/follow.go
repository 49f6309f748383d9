// Package follow reads the record of a lease whenever it may have changed.
package follow

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/tasks"
)

// A Follower reads the record of a lease at every signal of a watch, or polls without one. Set its fields
// before the first use. Only one goroutine may use it: it calls Watch, Read and Wait in a loop, and finally
// Unwatch.
type Follower struct {
	Authority lease.Authority
	Name      string // the name of the lease
	Clock     lease.Clock
	Timeout   time.Duration                     // the longest time for a request
	Interval  time.Duration                     // the longest time between two polls without a watch
	Retry     time.Duration                     // if waits shorter than this repeat, Wait makes them longer, up to this time
	Jitter    func(time.Duration) time.Duration // shortens a duration at random
	Spread    func() time.Duration              // how long Wait sleeps after the record may have changed; nil: not at all
	Tasks     *tasks.Group                      // the Group of the owner, which waits for requests that hang
	Reads     *tasks.Count                      // counts the outstanding Reads of all Followers of the owner
	Watches   *tasks.Count                      // counts the watches that were requested and have not begun

	Err error // why the last Read has not returned the record; nil if it has

	changed  <-chan struct{} // the signals of the watch; nil: there is no watch
	stop     func()          // frees the resources of the watch; nil: there is no watch
	lost     bool            // the watch was lost after the last call of Watch
	signaled bool            // the watch has signaled since the last read
	spurious bool            // after the last signal, the record was unchanged or could not be read
	last     lease.Record    // the record that was read last
	soonest  time.Duration   // the shortest time until the next Read
}

var (
	// ErrSilent is the error of a request that has not returned in time. It does not match
	// context.DeadlineExceeded, which stands for the deadline of the caller.
	ErrSilent = errors.New("the authority has not answered in time")

	// ErrNoTime is the Err of a Read if the authority has returned no record with its time.
	ErrNoTime = errors.New("the authority has returned no time")
)

// mostAsking is the most outstanding requests that use the same Count.
const mostAsking = 16

// Watch begins a watch if there is none and the authority is a lease.Watcher, and reports whether there is
// one. After a watch is lost, it begins none before the next Wait, because a new one might be lost at once.
func (f *Follower) Watch(ctx context.Context) bool {
	w, ok := f.Authority.(lease.Watcher)
	if ok && f.changed == nil && !f.lost {
		watching, stop := context.WithCancel(ctx)
		f.stop = stop
		f.changed, _ = Ask(ctx, f.Clock, f.Timeout, f.Tasks, f.Watches, func(context.Context) (<-chan struct{}, error) { return w.Watch(watching, f.Name) })
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

// Read reads the record. It returns false if the authority does not return one.
func (f *Follower) Read(ctx context.Context) (res lease.Result, known bool) {
	res, f.Err = Ask(ctx, f.Clock, f.Timeout, f.Tasks, f.Reads, func(ctx context.Context) (lease.Result, error) {
		return lease.Inspect(ctx, f.Authority, f.Name)
	})
	if f.Err == nil && res.Now.IsZero() {
		f.Err = ErrNoTime
	}
	known = f.Err == nil
	f.spurious = f.signaled && (!known || res.Record == f.last)
	f.last = res.Record
	return res, known
}

// Wait waits until the record may have changed, until d has passed, or until ctx is done, and reports
// whether d has passed. Without a watch it waits for at most one jittered Interval. If it is called several
// times in a row with a d shorter than Retry, it waits longer, up to Retry. Otherwise a Follower would send
// requests without pauses to an authority that always answers that the lease is about to end.
func (f *Follower) Wait(ctx context.Context, d time.Duration) (passed bool) {
	if f.changed == nil {
		d = min(d, f.Jitter(f.Interval))
	}
	if f.spurious { // Some authorities send signals without a change.
		pause := min(d, f.Jitter(f.Interval/10))
		_ = clock.Sleep(ctx, f.Clock, pause)
		if d != lease.Infinite {
			d -= pause
		}
	}
	if d >= f.Retry {
		f.soonest = 0
	}
	f.signaled = false
	select {
	case _, open := <-f.changed:
		f.note(open)
	case <-clock.After(f.Clock, max(d, f.soonest)):
		f.soonest = min(max(2*f.soonest, time.Millisecond), f.Retry)
		passed = true
	case <-ctx.Done():
		return false
	}
	if f.Spread != nil && clock.Sleep(ctx, f.Clock, f.Spread()) == nil {
		select { // The next Read also shows what was signaled during the sleep.
		case _, open := <-f.changed:
			f.note(open)
		default:
		}
	}
	return passed
}

// note records a signal of the watch, or its loss if the channel is not open.
func (f *Follower) note(open bool) {
	if f.signaled, f.lost = open, !open; f.lost {
		f.Unwatch()
	}
}

// Ask returns the results of do. It returns ErrSilent if do takes longer than limit, even if do ignores its
// context, or if too many requests that running counts are outstanding.
func Ask[T any](ctx context.Context, c lease.Clock, limit time.Duration, g *tasks.Group, running *tasks.Count, do func(context.Context) (T, error)) (T, error) {
	type answer struct {
		res T
		err error
	}
	limited, cancel := clock.WithTimeout(ctx, c, limit)
	defer cancel()
	got, in := tasks.Ask(limited, g, running, mostAsking, func(ctx context.Context) (answer, error) {
		res, err := do(ctx)
		return answer{res, err}, nil
	})
	if !in || got.err != nil && limited.Err() != nil {
		if got.err = ctx.Err(); got.err == nil {
			got.err = ErrSilent
		}
	}
	return got.res, got.err
}
