package session

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// A belief is what a Session knows of the lease that it holds. It is never changed, only
// replaced, so that CheckAlive can read it without a lock.
type belief struct {
	id     lease.ID
	token  lease.Token
	sent   time.Time     // when the exchange that it rests on was sent
	budget time.Duration // how long after that it holds; lease.Infinite: until told otherwise

}

// left is how much longer the belief holds: not at all if it is not positive.
func (b *belief) left(o *Options, now time.Time) time.Duration {
	if b.budget == lease.Infinite {
		return lease.Infinite
	}
	return b.budget - o.elapsed(b.sent, now)
}

// until is U; zero if there is none.
func (b *belief) until() time.Time {
	if b.budget == lease.Infinite {
		return time.Time{}
	}
	return b.sent.Add(b.budget)
}

// budget is how much of a duration that is certain at the authority may be believed here,
// counted from the sending: d(1-e)/(1+e) - margin, rounded down.
func (o *Options) budget(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return lease.Infinite
	}
	d = max(d, 0)        // an authority may answer nonsense
	const up = 1 + 1e-15 // float64 rounds to nearest
	drift := math.Ceil(float64(d) * (2 * o.MaxClockDrift / (1 + o.MaxClockDrift)) * up)
	return d - time.Duration(drift) - o.Margin
}

// most is how much time may have passed on the faster clock while d passed on the slower:
// d(1+e)/(1-e), rounded up.
func (o *Options) most(d time.Duration) time.Duration {
	return d + time.Duration(math.Ceil(float64(d)*((1+o.MaxClockDrift)/(1-o.MaxClockDrift)-1))) + 1 // of two roundings
}

// elapsed is the time from one reading of the clock to another: the monotonic time, or the
// wall clock's if that is further ahead than a pause accounts for, since the monotonic
// clock stops while a machine sleeps.
func (o *Options) elapsed(from, to time.Time) time.Duration {
	mono, wall := to.Sub(from), to.Round(0).Sub(from.Round(0))
	if wall-mono > o.MaxClockJump {
		return wall
	}
	return mono
}
