package blobtest

import (
	"math"
	"sync"
	"time"
)

// A Clock is a clock that a test controls. One from [NewClock] moves only when the test calls
// [Clock.Advance]. One from [NewFastClock] also runs at a constant rate. A Clock is a [lease.Clock], so one
// can drive the store, the server and the sessions of a test. Any number of goroutines may call its methods.
//
// A Clock stops for good about 292 years after its start, because a [time.Duration] cannot be longer.
type Clock struct {
	mu      sync.Mutex
	base    time.Time // the time that the clock showed at the real time in the field since
	since   time.Time
	last    time.Time // the latest time that the clock can show
	rate    float64
	waiters []waiter
}

const century = 100 * 365 * 24 * time.Hour // longer than any test waits

type waiter struct {
	at time.Time
	ch chan time.Time
}

// NewClock returns a clock that begins at start, and moves only when the test calls [Clock.Advance].
func NewClock(start time.Time) *Clock { return NewFastClock(start, 0) }

// NewFastClock returns a clock that begins at the given time and runs at the given rate. At rate 60, it
// moves a minute in each real second. At rate 0, it stands still. A negative rate and NaN count as 0.
func NewFastClock(start time.Time, rate float64) *Clock {
	start = start.Round(0).UTC()
	if math.IsNaN(rate) {
		rate = 0
	}
	// Zero times infinity is not a number.
	rate = min(max(rate, 0), math.MaxFloat64)
	return &Clock{base: start, since: time.Now(), last: start.Add(math.MaxInt64), rate: rate}
}

// Now returns the time that the clock shows, in UTC. It never decreases.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.rate == 0 {
		return c.base
	}
	run := float64(time.Since(c.since)) * c.rate
	if run >= math.MaxInt64 { // the conversion would overflow, and the clock would run backward
		return c.last
	}
	return c.within(c.base.Add(time.Duration(run)))
}

func (c *Clock) within(t time.Time) time.Time {
	if t.After(c.last) {
		return c.last
	}
	return t
}

// Advance moves the clock forward by d. Before it returns, it sends the new time to the channel of each
// [Clock.After] call whose duration has passed. A negative d counts as 0, because the clock of an
// authority must never run backward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.within(c.base.Add(max(d, 0)))
	now, rest := c.now(), c.waiters[:0]
	for _, w := range c.waiters {
		if now.Before(w.at) {
			rest = append(rest, w)
		} else {
			w.ch <- now
		}
	}
	clear(c.waiters[len(rest):])
	c.waiters = rest
}

// After returns a channel with capacity 1, to which the clock sends its current time when it has moved
// forward by at least d.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	w := waiter{now.Add(d), make(chan time.Time, 1)}
	if d <= 0 {
		w.ch <- now
		return w.ch
	}
	c.waiters = append(c.waiters, w)
	if c.rate > 0 {
		// The timer fires one millisecond late on purpose. If it fired too early, before the time w.at,
		// Advance would send nothing to the channel, and no second timer would call it after w.at.
		real := min(float64(d)/c.rate, float64(century)) + float64(time.Millisecond)
		time.AfterFunc(time.Duration(real), func() { c.Advance(0) })
	}
	return w.ch
}
