package holder

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// A Belief is what a Session knows about the lease that it holds. It is never modified, but replaced,
// so that CheckAlive can read it without a lock.
type Belief struct {
	ID     lease.ID
	Token  lease.Token
	Sent   time.Time     // when the request was sent on whose answer the belief rests
	Budget time.Duration // how long after sent the belief lasts; lease.Infinite if no end is known
}

// Left returns how much longer the belief lasts. It has ended if the result is not positive.
func (b *Belief) Left(o *Options, now time.Time) time.Duration {
	if b.Budget == lease.Infinite {
		return lease.Infinite
	}
	return b.Budget - o.Elapsed(b.Sent, now)
}

// Until returns U, the time at which the belief ends, or the zero time if no end is known.
func (b *Belief) Until() time.Time {
	if b.Budget == lease.Infinite {
		return time.Time{}
	}
	return b.Sent.Add(b.Budget)
}

// Budget returns how long a holder can rely on a lease that was granted for the duration d, counted
// from the sending of the request. The result is d(1-e)/(1+e) - margin, rounded down.
func (o *Options) Budget(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return lease.Infinite
	}
	d = max(d, 0)        // an authority may return a negative duration
	const up = 1 + 1e-15 // float64 rounds to nearest, and the drift must not be too small
	drift := math.Ceil(float64(d) * (2 * o.MaxClockDrift / (1 + o.MaxClockDrift)) * up)
	return d - time.Duration(drift) - o.Margin
}

// MaxElsewhere returns the longest time that can pass on one clock while d passes on another,
// d(1+e)/(1-e) rounded up, or lease.Infinite if it does not fit in a time.Duration.
func (o *Options) MaxElsewhere(d time.Duration) time.Duration {
	more := math.Ceil(float64(d) * ((1+o.MaxClockDrift)/(1-o.MaxClockDrift) - 1))
	if float64(d)+more >= math.MaxInt64 {
		return lease.Infinite
	}
	return d + time.Duration(more) + 1 // add 1 ns, because two results were rounded
}

// Elapsed returns the time between two readings of the clock. The monotonic clock can stop while the
// computer is suspended, so if the wall clock has advanced further than it by more than MaxClockJump,
// the time on the wall clock counts.
func (o *Options) Elapsed(from, to time.Time) time.Duration {
	mono, wall := to.Sub(from), to.Round(0).Sub(from.Round(0))
	if wall-mono > o.MaxClockJump {
		return wall
	}
	return mono
}
