package follow_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/memory"
)

const (
	name     = "jobs/nightly"
	timeout  = 5 * time.Second
	interval = 10 * time.Second
	retry    = 2 * time.Second
)

// An authority answers a Follower as a test tells it to.
type authority struct {
	lease.Authority
	read  func(ctx context.Context) error // is called before the record is read; nil: nothing is called
	watch func(ctx context.Context) (<-chan struct{}, error)

	mu      sync.Mutex
	watches int             // the number of watches that were begun
	last    context.Context // the context of the last watch
}

func (a *authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRead && a.read != nil {
		if err := a.read(ctx); err != nil {
			return lease.Result{}, err
		}
	}
	return a.Authority.Do(ctx, name, req)
}

// A watcher is an authority that can be watched.
type watcher struct{ *authority }

func (w watcher) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	w.mu.Lock()
	w.watches++
	w.last = ctx
	w.mu.Unlock()
	return w.watch(ctx)
}

// signals returns a function that begins a watch with the signals in c, and never fails.
func signals(c <-chan struct{}) func(context.Context) (<-chan struct{}, error) {
	return func(context.Context) (<-chan struct{}, error) { return c, nil }
}

func over(watch func(context.Context) (<-chan struct{}, error)) (*authority, *follow.Follower) {
	a := &authority{Authority: lease.NewAuthority(memory.New(nil)), watch: watch}
	f := &follow.Follower{
		Authority: a, Name: name, Clock: clock.System{}, Timeout: timeout, Interval: interval, Retry: retry,
		Jitter: func(d time.Duration) time.Duration { return d - d/4 },
		Tasks:  new(tasks.Group), Reads: new(tasks.Count), Watches: new(tasks.Count),
	}
	if watch != nil {
		f.Authority = watcher{a}
	}
	return a, f
}

// change changes the record.
func (a *authority) change(t *testing.T) {
	if _, err := a.Do(t.Context(), name, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Duration: lease.Infinite}); err != nil {
		t.Error(err)
	}
}

// waits checks that Wait(d) takes the time in took, and returns the value in passed.
func waits(t *testing.T, f *follow.Follower, d, took time.Duration, passed bool) {
	t.Helper()
	began := time.Now()
	if got := f.Wait(t.Context(), d); got != passed || time.Since(began) != took {
		t.Errorf("Wait of %v: %v after %v, want %v after %v", d, got, time.Since(began), passed, took)
	}
}

func reads(t *testing.T, f *follow.Follower, want bool, took time.Duration) lease.Result {
	t.Helper()
	began := time.Now()
	res, known := f.Read(t.Context())
	if known != want || time.Since(began) != took {
		t.Errorf("Read: %v after %v, want %v after %v", known, time.Since(began), want, took)
	}
	return res
}

func watches(t *testing.T, f *follow.Follower, want bool, took time.Duration) {
	t.Helper()
	began := time.Now()
	if got := f.Watch(t.Context()); got != want || time.Since(began) != took {
		t.Errorf("Watch: %v after %v, want %v after %v", got, time.Since(began), want, took)
	}
}

// A signal ends a Wait, and the following Read returns the changed record.
func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan struct{}, 1)
		a, f := over(signals(c))
		watches(t, f, true, 0)
		if r := reads(t, f, true, 0).Record; r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
		time.AfterFunc(time.Hour, func() { a.change(t); c <- struct{}{} })
		waits(t, f, lease.Infinite, time.Hour, false)
		watches(t, f, true, 0)
		if r := reads(t, f, true, 0).Record; r.ID != (lease.ID{9}) {
			t.Errorf("the record is %+v", r)
		}
		c <- struct{}{}
		waits(t, f, lease.Infinite, 0, false) // the last Read showed a change, so there is no pause
		if a.watches != 1 {
			t.Errorf("%d watches", a.watches)
		}
		f.Unwatch()
		if a.last.Err() == nil {
			t.Error("the watch was not freed")
		}
	})
}

// If the record did not change after a signal, or if a Read failed, the next Wait includes a pause.
func TestSpuriousSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan struct{}, 1)
		a, f := over(signals(c))
		a.change(t)
		watches(t, f, true, 0)
		reads(t, f, true, 0)
		const pause = interval / 10 * 3 / 4
		for range 3 {
			c <- struct{}{}
			waits(t, f, lease.Infinite, 0, false)
			reads(t, f, true, 0)
			c <- struct{}{}
			waits(t, f, lease.Infinite, pause, false)
			a.read = func(context.Context) error { return errors.New("bad") }
			reads(t, f, false, 0)
			c <- struct{}{}
			waits(t, f, lease.Infinite, pause, false)
			a.read = nil
			reads(t, f, true, 0) // the authority returns the record again
		}
		waits(t, f, time.Millisecond, time.Millisecond, true) // a pause is no longer than the wait
		f.Unwatch()
	})
}

// If a watch is lost, the current Wait ends, and the resources of the watch are freed. After the next Wait,
// a new watch begins.
func TestLostWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		close(closed)
		a, f := over(signals(closed))
		for i := range 5 {
			watches(t, f, true, 0)
			if a.watches != i+1 {
				t.Errorf("%d watches, want %d", a.watches, i+1)
			}
			reads(t, f, true, 0)
			waits(t, f, lease.Infinite, 0, false)
			if a.last.Err() == nil {
				t.Error("the lost watch was not freed")
			}
			watches(t, f, false, 0)
			reads(t, f, true, 0)
			waits(t, f, lease.Infinite, interval*3/4, true)
		}
		f.Unwatch()
	})
}

// A Follower gives up a request that hangs for longer than its Timeout. At most 16 Reads and 16 requests
// for a watch may hang at once.
func TestWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var hanging atomic.Int32
		a, f := over(func(context.Context) (<-chan struct{}, error) { <-free; return nil, errors.New("late") })
		a.read = func(context.Context) error { hanging.Add(1); <-free; return nil }
		for range 16 {
			watches(t, f, false, timeout)
			reads(t, f, false, timeout)
		}
		watches(t, f, false, 0)
		reads(t, f, false, 0)
		synctest.Wait()
		if a.mu.Lock(); a.watches != 16 || hanging.Load() != 16 {
			t.Errorf("%d watches and %d reads hang", a.watches, hanging.Load())
		}
		a.mu.Unlock()
		close(free)
		synctest.Wait()
		a.read = nil
		reads(t, f, true, 0)
		if err := f.Tasks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		reads(t, f, false, 0) // the owner was closed
	})
}

// A Follower waits longer and longer if an authority always answers that the lease is about to end.
func TestShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := over(signals(make(chan struct{})))
		watches(t, f, true, 0)
		waits(t, f, 0, 0, true)
		waits(t, f, 0, time.Millisecond, true)
		waits(t, f, 1, 2*time.Millisecond, true)
		for range 20 {
			f.Wait(t.Context(), 1)
		}
		waits(t, f, 1, retry, true)
		waits(t, f, retry, retry, true)
		waits(t, f, time.Nanosecond, time.Millisecond, true)
		f.Unwatch()
	})
}

// brief is a Clock that cannot measure long durations, like a clock that multiplies durations.
type brief struct {
	clock.System
	t *testing.T
}

func (c brief) After(d time.Duration) <-chan time.Time {
	if d > time.Hour {
		c.t.Errorf("After(%v)", d)
	}
	return time.After(d)
}

// A Wait with lease.Infinite never calls Clock.After with a long duration, not even after a pause.
func TestWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan struct{}, 1)
		_, f := over(signals(c))
		f.Clock = brief{t: t}
		watches(t, f, true, 0)
		for range 2 {
			reads(t, f, true, 0)
			time.AfterFunc(time.Minute, func() { c <- struct{}{} })
			waits(t, f, lease.Infinite, time.Minute, false)
		}
		f.Unwatch()
	})
}
