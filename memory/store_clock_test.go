package memory_test

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A fixed clock always shows the same time.
type fixed time.Time

func (c fixed) Now() time.Time                       { return time.Time(c) }
func (c fixed) After(time.Duration) <-chan time.Time { return nil }

// A hand clock shows the time to which it is set.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (c *hand) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *hand) After(time.Duration) <-chan time.Time { return nil }

func (c *hand) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *hand) add(d time.Duration) { c.set(c.Now().Add(d)) }

// step returns the reading now with a wall clock that is s seconds ahead and an unchanged monotonic clock.
// Package time cannot make such a reading, so step changes the word with the seconds and checks the result.
func step(t *testing.T, now time.Time, s int64) time.Time {
	stepped := now
	word := (*uint64)(unsafe.Pointer(&stepped))
	*word += uint64(s) << 30
	if wall := stepped.Round(0).Sub(now.Round(0)); wall != time.Duration(s)*time.Second || stepped.Sub(now) != 0 {
		t.Fatalf("stepped by %d s, the wall clock moved by %v and the monotonic one by %v", s, wall, stepped.Sub(now))
	}
	return stepped
}

// Setting the wall clock forward or back does not move a lease.
func TestWallClockStep(t *testing.T) {
	for _, seconds := range []int64{-24 * 3600, -1, 1, 24 * 3600} {
		clock := &hand{now: time.Now()}
		s := memory.New(&memory.Options{Clock: clock})
		a := s.Authority()
		began := do(t, a, "a", acquire).Now
		clock.set(step(t, clock.Now(), seconds))
		res := do(t, a, "a", lease.Request{Action: lease.ActionRead})
		if res.Record.State != lease.Leased || res.MaxRemaining() != acquire.Duration || res.Now != began {
			t.Errorf("stepped by %d s: %v, %v left at %v, began %v", seconds, res.Record.State, res.MaxRemaining(), res.Now, began)
		}
		clock.add(acquire.Duration)
		if res := do(t, a, "a", lease.Request{Action: lease.ActionRead}); res.Record.State != lease.Expired {
			t.Errorf("stepped by %d s: %v after %v", seconds, res.Record.State, acquire.Duration)
		}
	}
}

// The clock of a Store may advance by more than the longest Duration, and may show the year 9999.
func TestClockAtItsEnds(t *testing.T) {
	clock := &hand{now: time.Unix(0, 0)}
	s := memory.New(&memory.Options{Clock: clock})
	a := s.Authority()
	do(t, a, "a", acquire)
	clock.set(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	if got := load(t, s, "a"); got.Record.At(got.Now).State != lease.Expired || !got.Now.After(time.Unix(0, 0)) {
		t.Errorf("after the longest Duration: %+v", got)
	}
	do(t, a, "a", renew)

	late := memory.New(&memory.Options{Clock: fixed(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))}).Authority()
	if got := do(t, late, "a", acquire).Record; got.Duration != lease.Infinite {
		t.Errorf("a lease that ends after the year 9999: %+v", got)
	}
}

// A holder uses the Store's clock if its options have no clock.
func TestLeaseClock(t *testing.T) {
	start := time.Date(2012, 1, 26, 23, 30, 18, 0, time.UTC)
	s := memory.New(&memory.Options{Clock: fixed(start)})
	if _, err := s.Lease("", nil); lease.CodeOf(err) != lease.ErrName {
		t.Errorf("Lease of no name: %v", err)
	}
	own := start.Add(-time.Hour)
	for _, c := range []struct {
		o    *session.Options
		want time.Time
	}{
		{nil, start},
		{&session.Options{Owner: "worker-1"}, start},
		{&session.Options{Clock: fixed(own)}, own},
	} {
		l, err := s.Lease("a", c.o)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := l.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if until, ok := l.Until(); !ok || until.Sub(c.want) <= 0 || until.Sub(c.want) > time.Minute {
			t.Errorf("%+v: until %v, %v; want within a minute of %v", c.o, until, ok, c.want)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o := c.o; o != nil && o.Owner == "worker-1" && o.Clock != nil {
			t.Error("the caller's options were changed")
		}
	}
}
