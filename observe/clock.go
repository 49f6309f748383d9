package observe

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A clock counts the time that has elapsed since it was started, and never backward.
type clock struct {
	rate     float64 // how much faster another clock may be: (1+e)/(1-e) - 1
	injected lease.Clock
	started  time.Time
	origin   time.Time    // started, in UTC and without a monotonic reading
	last     atomic.Int64 // latest reading of an injected clock
}

func (c *clock) start(injected lease.Clock, rate float64) {
	c.rate = (1+rate)/(1-rate) - 1
	c.injected, c.started = injected, time.Now()
	if injected != nil {
		c.started = injected.Now()
	}
	c.origin = c.started.Round(0).UTC()
}

// elapsed returns the time since the start.
func (c *clock) elapsed() time.Duration {
	if c.injected == nil {
		return time.Since(c.started)
	}
	elapsed := int64(c.injected.Now().Sub(c.started))
	for {
		last := c.last.Load()
		if elapsed <= last {
			return time.Duration(last)
		}
		if c.last.CompareAndSwap(last, elapsed) {
			return time.Duration(elapsed)
		}
	}
}

// most returns how much time may have passed on another clock while d passed on this one.
func (c *clock) most(d time.Duration) time.Duration {
	return add(d, time.Duration(math.Ceil(float64(d)*c.rate)))
}

// time returns an elapsed time as a point in time. It has a meaning only within this Store.
func (c *clock) time(elapsed time.Duration) time.Time { return c.origin.Add(elapsed) }
