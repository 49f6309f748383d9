package memory

import (
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A clock measures the time that has elapsed since its start. The elapsed time never decreases.
type clock struct {
	lease.Clock
	started time.Time
	origin  time.Time    // the time in the field started, in UTC and without a monotonic reading
	last    atomic.Int64 // the largest elapsed time of an injected clock
}

func (c *clock) start(injected lease.Clock) {
	c.Clock, c.started = injected, time.Now()
	if injected != nil {
		c.started = injected.Now()
	}
	c.origin = c.started.Round(0).UTC()
}

// nowAndElapsed returns the current time in UTC, and the time that has elapsed since the start.
func (c *clock) nowAndElapsed() (time.Time, time.Duration) {
	elapsed := c.elapsed()
	return c.origin.Add(elapsed), elapsed
}

func (c *clock) elapsed() time.Duration {
	if c.Clock == nil {
		return time.Since(c.started) // uses the monotonic clock
	}
	elapsed := int64(c.Clock.Now().Sub(c.started))
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
