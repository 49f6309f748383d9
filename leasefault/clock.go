package leasefault

import (
	"math"
	"sync"
	"time"
)

// A Clock is a [lease.Clock] that a test can set to a wrong time or run at a wrong rate. Use it for a holder
// or, with [Skew], for a store. A new Clock agrees with package time. The zero Clock is ready to use.
//
// The methods of a Clock are safe for concurrent use by multiple goroutines. A Clock need not be closed. In a
// synctest bubble, a Clock follows the fake clock of the bubble.
type Clock struct {
	mu      sync.Mutex
	base    time.Time // the time of package time when this Clock was last set; zero before the first use
	shown   time.Time // the time that this clock showed at base
	rate    float64
	paused  bool
	waiting map[*alarm]struct{}
}

const century = 100 * 365 * 24 * time.Hour // longer than any test waits

type alarm struct {
	at    time.Time // when the alarm is due on this clock
	ring  chan time.Time
	timer *time.Timer
}

// NewClock returns a Clock that shows the same time as package time and runs at the same rate.
func NewClock() *Clock { return new(Clock) }

// NewClockAt returns a Clock that shows the given time, in UTC, and from then on runs at the given rate. The
// rate means the same as in [Clock.Rate]. At rate 0, the Clock moves only when the test calls [Clock.Step].
func NewClockAt(start time.Time, rate float64) *Clock {
	c := NewClock()
	c.Rate(rate)
	c.shown = start.Round(0).UTC()
	return c
}

// lock locks the mutex of the clock. The first call also starts the clock.
func (c *Clock) lock() {
	c.mu.Lock()
	if c.base.IsZero() {
		c.base, c.rate, c.waiting = time.Now(), 1, map[*alarm]struct{}{}
		c.shown = c.base
	}
}

// Now returns the time on this clock.
func (c *Clock) Now() time.Time {
	c.lock()
	defer c.mu.Unlock()
	return c.now()
}

// After returns a channel of capacity 1, on which the Clock sends its time when the Clock has advanced by d.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.lock()
	defer c.mu.Unlock()
	a := &alarm{at: c.now().Add(d), ring: make(chan time.Time, 1)}
	c.waiting[a] = struct{}{}
	c.arm(a)
	return a.ring
}

// Step moves the clock forward by d, or backward if d is negative.
func (c *Clock) Step(d time.Duration) {
	c.set(func() { c.shown = atMost(c.shown.Add(d)) })
}

// Rate sets the speed of the Clock relative to package time: Rate(2) makes the Clock run twice as fast, and
// Rate(0) stops it. Rate panics if rate is negative, infinite or not a number. Use Step to move the Clock
// backward.
//
// After a call of Rate, Step, Pause or Resume, a Clock advances by at most 292 years, the longest
// [time.Duration], and then stands still until the next such call. A Clock never shows a time after the year
// 9999, because a record of a lease cannot contain such a time.
func (c *Clock) Rate(rate float64) {
	must(rate >= 0 && !math.IsInf(rate, 1), "Clock.Rate: the rate is %v, and must be finite and not negative", rate)
	c.set(func() { c.rate = rate })
}

// Pause simulates a process that the operating system has suspended. Until Resume is called, no timer fires:
// the Clock sends nothing on the channels that After has returned. Now still shows that time passes. To stop
// the time itself, call Rate(0).
func (c *Clock) Pause() {
	c.set(func() { c.paused = true })
}

// Resume ends a Pause. For each timer that has expired during the Pause, the Clock sends its time on the
// channel that After has returned.
func (c *Clock) Resume() {
	c.set(func() { c.paused = false })
}

func (c *Clock) set(f func()) {
	c.lock()
	defer c.mu.Unlock()
	c.shown = c.now()
	c.base = time.Now()
	f()
	for a := range c.waiting {
		c.arm(a)
	}
}

func (c *Clock) now() time.Time {
	passed := time.Since(c.base)
	if c.rate != 1 {
		passed = duration(float64(passed) * c.rate)
	}
	return atMost(c.shown.Add(passed))
}

var end = time.Date(9999, 12, 31, 23, 59, 59, 1e9-1, time.UTC)

// atMost returns t, or the end of the year 9999 if t is later.
func atMost(t time.Time) time.Time {
	if t.After(end) {
		return end
	}
	return t
}

// duration converts ns nanoseconds to a time.Duration. If ns is too large, it returns the longest Duration.
func duration(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// The method arm delivers an alarm that is due. For any other alarm, it sets a timer, unless the timer would
// run for more than a century. During a Pause, the method only stops the timer of the alarm.
func (c *Clock) arm(a *alarm) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if c.paused {
		return
	}
	now := c.now()
	left := a.at.Sub(now)
	if left <= 0 {
		delete(c.waiting, a)
		a.ring <- now
		return
	}
	if a.at.After(c.shown.Add(math.MaxInt64)) { // the clock stops before the alarm is due
		return
	}
	if c.rate != 1 {
		left = duration(float64(left)/c.rate + 1) // rounded up, so that the timer does not fire early
	}
	if left > century { // the clock is slow, or its rate is 0
		return
	}
	a.timer = time.AfterFunc(left, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, ok := c.waiting[a]; ok {
			c.arm(a)
		}
	})
}
