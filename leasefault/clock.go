package leasefault

import (
	"math"
	"sync"
	"time"
)

// A Clock is a [lease.Clock] that a test can set wrong. It begins with the time and the rate of
// package time. A holder that uses a Clock, or a store that gets one by [Skew], runs in another
// time than the rest of the test.
//
// The methods are safe for use by several goroutines at once. A Clock needs no closing. In a
// synctest bubble it follows the clock of the bubble. The zero Clock is ready to use.
type Clock struct {
	mu      sync.Mutex
	base    time.Time // of package time, when the clock was last set; zero before the first use
	shown   time.Time // at base
	rate    float64
	paused  bool
	waiting map[*alarm]struct{}
}

type alarm struct {
	at    time.Time // on this clock
	ring  chan time.Time
	timer *time.Timer
}

// NewClock returns a Clock that shows the time of package time at its rate.
func NewClock() *Clock { return new(Clock) }

// lock locks the clock. The first call starts it.
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

// After returns a channel of capacity 1 that gets the time once d has passed on this clock.
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
	c.set(func() { c.shown = c.shown.Add(d) })
}

// Rate makes the clock run rate times as fast as package time. The rate 0 stops it. Rate panics if
// rate is negative, infinite or not a number. To move the clock backward, use Step.
func (c *Clock) Rate(rate float64) {
	must(rate >= 0 && !math.IsInf(rate, 1), "Clock.Rate: the rate is %v, and must be finite and not negative", rate)
	c.set(func() { c.rate = rate })
}

// Pause stops delivering the channels of After until Resume is called, while the time goes on. So
// it simulates a holder that is suspended.
func (c *Clock) Pause() {
	c.set(func() { c.paused = true })
}

// Resume ends a Pause. Every channel of After that fell due during the Pause gets its time now.
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
		passed = time.Duration(float64(passed) * c.rate)
	}
	return c.shown.Add(passed)
}

// arm delivers an alarm that is due, and sets the timer of an alarm that is not.
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
	if c.rate == 0 {
		return
	}
	if c.rate != 1 {
		left = time.Duration(float64(left)/c.rate) + 1 // rounded up: not early
	}
	a.timer = time.AfterFunc(left, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, ok := c.waiting[a]; ok {
			c.arm(a)
		}
	})
}
