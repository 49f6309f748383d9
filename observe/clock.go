package observe

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A clock measures the time that has elapsed since its start. The elapsed time never decreases.
type clock struct {
	rate     float64 // by what fraction another clock may run faster: (1+e)/(1-e) - 1
	injected lease.Clock
	started  time.Time
	origin   time.Time    // the time in the field started, in UTC and without a monotonic reading
	last     atomic.Int64 // the largest elapsed time of an injected clock
}

func (c *clock) start(injected lease.Clock, rate float64) {
	c.rate = (1+rate)/(1-rate) - 1
	c.injected, c.started = injected, time.Now()
	if injected != nil {
		c.started = injected.Now()
	}
	c.origin = c.started.Round(0).UTC()
}

// elapsed returns the time since the start of the clock.
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

// If the duration d has passed on the clock c, at most maxElsewhere(d) has passed on the clock of
// any other process.
func (c *clock) maxElsewhere(d time.Duration) time.Duration {
	return add(d, time.Duration(math.Ceil(float64(d)*c.rate)))
}

// pointAt returns the start of this clock plus the given elapsed time. The result has no meaning
// for other processes.
func (c *clock) pointAt(elapsed time.Duration) time.Time { return c.origin.Add(elapsed) }
