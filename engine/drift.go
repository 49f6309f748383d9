package engine

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// A stopwatch can also tell how much time passes on the clocks of other processes.
type stopwatch struct {
	clock.Stopwatch
	faster float64 // by what fraction another clock may run faster: (1+e)/(1-e) - 1
}

// start starts the clock. The parameter drift is e, the largest relative error of the rate of any clock.
func (c *stopwatch) start(injected lease.Clock, drift float64) {
	c.faster = (1+drift)/(1-drift) - 1
	c.Start(injected)
}

// maxElsewhere returns the most time that can pass on the clock of any other process while d passes on c.
func (c *stopwatch) maxElsewhere(d time.Duration) time.Duration {
	return add(d, time.Duration(math.Ceil(float64(d)*c.faster)))
}
