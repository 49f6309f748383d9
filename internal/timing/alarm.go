package timing

import (
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An Alarm calls Ring once, on a goroutine of its own, at the time that it was last set for. It may
// ring once too often if it is set just as it rings. Ring must be set before the Alarm is used, and
// then left alone.
type Alarm struct {
	Ring func()

	mu    sync.Mutex
	at    time.Time     // zero: not set, or it has rung
	timer *time.Timer   // with the System clock
	stop  chan struct{} // with any other, while set: ends the goroutine that waits
}

// Set sets the alarm for d after now on clock c, instead of what it was set for; lease.Infinite: for
// never. All calls must give the same clock. Set calls no method of it, so it may be called with
// locks held. The function that it returns must be called soon after, without locks, since a Clock's
// After may wait.
func (a *Alarm) Set(c lease.Clock, now time.Time, d time.Duration) (start func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := now.Add(d)
	if d != lease.Infinite && a.at.Equal(at) {
		return func() {}
	}
	a.unset()
	if d == lease.Infinite {
		return func() {}
	}
	a.at = at
	if _, ok := c.(System); !ok {
		stop := make(chan struct{})
		a.stop = stop
		return func() { go callAfter(After(c, d), stop, a.rings) }
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.rings)
	} else {
		a.timer.Reset(d)
	}
	return func() {}
}

// unset makes the alarm ring no more. mu is held.
func (a *Alarm) unset() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
}

func (a *Alarm) rings() {
	a.mu.Lock()
	a.at = time.Time{} // so that it can be set for the same time again
	a.mu.Unlock()
	a.Ring()
}
