package engine

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// A stopwatch measures time, and can also bound the time that has passed on the clocks of other processes.
type stopwatch struct {
	clock.Stopwatch
	faster float64 // by what fraction another clock may run faster: (1+e)/(1-e) - 1
}

// start starts the stopwatch. The last parameter limits by how much a clock can run too fast or too slow. For
// example, with a drift of 0.001, a clock can gain or lose at most 1 ms in each second.
func (c *stopwatch) start(injected lease.Clock, drift float64) {
	c.faster = (1+drift)/(1-drift) - 1
	c.Start(injected)
}

// maxElsewhere returns the most time that can pass on the clock of another process while d passes on this
// one.
func (c *stopwatch) maxElsewhere(d time.Duration) time.Duration {
	return add(d, time.Duration(math.Ceil(float64(d)*c.faster)))
}
