package session

import (
	"context"
	"iter"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/tasks"
)

// FollowOptions configure [Follow]. A nil *FollowOptions means the defaults. If a field is zero, its
// default is used.
type FollowOptions struct {
	Interval time.Duration // the time between two reads without a change; at least 1 ms; default: 1 s
	Timeout  time.Duration // the time limit of one request; at least 1 ms; default: 5 s
}

// Follow returns the states of the lease with the given name, as they change: who has it, with which token,
// and until when. A renewal is a change too. The first state is the current one. Follow is for observers: it
// does not acquire the lease, and an observer sees a change only after it has happened.
//
// Follow reads the record at least once in every Interval, because the watch of a store may leave out grants
// and renewals. Follow also reads the record when the lease may have expired. If the authority is a
// [lease.Watcher], Follow also reads the record after each signal of the watch. If the record has not changed
// after a signal, Follow ignores all further signals for one Interval. If the body of the loop is slow, the
// loop does not see every change.
//
// If the record cannot be read, Follow yields the error, and continues. The iteration ends when ctx is done,
// without an error. If an argument or an option is invalid, the only element is a [*lease.FieldError].
func Follow(ctx context.Context, a lease.Authority, name string, o *FollowOptions) iter.Seq2[lease.Result, error] {
	needContext(ctx, "Follow")
	return func(yield func(lease.Result, error) bool) {
		f, err := newFollower(a, name, o)
		if err != nil {
			yield(lease.Result{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		followAll(ctx, f, yield)
	}
}

func newFollower(a lease.Authority, name string, o *FollowOptions) (*follow.Follower, error) {
	var c FollowOptions
	if o != nil {
		c = *o
	}
	byDefault(&c.Interval, time.Second)
	byDefault(&c.Timeout, 5*time.Second)
	if a == nil {
		return nil, fields.Missing("Follow.a")
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	for field, d := range map[string]time.Duration{"Interval": c.Interval, "Timeout": c.Timeout} {
		if d < shortest {
			return nil, &lease.FieldError{Field: "FollowOptions." + field, Value: d.String(), Bound: tooShort, Code: lease.ErrOption}
		}
	}
	return &follow.Follower{
		Authority: a, Name: name, Clock: clock.System{}, Timeout: c.Timeout, Interval: c.Interval, Retry: c.Interval,
		Jitter: func(d time.Duration) time.Duration { return d },
		Tasks:  new(tasks.Group), Reads: new(tasks.Count), Watches: new(tasks.Count),
	}, nil
}

// followAll yields every change until ctx is done, or yield returns false.
func followAll(ctx context.Context, f *follow.Follower, yield func(lease.Result, error) bool) {
	defer f.Unwatch()
	var last lease.Record
	for first, passed := true, true; ; {
		if !first { // a watch that does not begin must not delay the first state
			f.Watch(ctx)
		}
		res, known := f.Read(ctx)
		if ctx.Err() != nil {
			return
		}
		changed := known && (first || res.Record != last)
		if (changed || !known) && !yield(res, f.Err) {
			return
		}
		left := f.Interval
		if known {
			if _, watches := f.Authority.(lease.Watcher); watches && first {
				left = 0 // the record may change before the watch begins
			}
			first, last = false, res.Record
			if res.Record.State.Locked() {
				left = min(left, res.MaxRemaining())
			}
		}
		if !changed && !passed { // ignore further signals, which could cause a read each, for one Interval
			_ = clock.Sleep(ctx, f.Clock, f.Interval)
		} else {
			passed = f.Wait(ctx, left)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
