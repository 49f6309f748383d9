package clock

import (
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An Alarm calls Func once, on a goroutine of its own, at the time for which it was last set. If it is set
// just as it rings, it may ring once too often. Set Func before the first use, and never change it.
type Alarm struct {
	Func func()

	mu    sync.Mutex
	at    time.Time     // zero: not set, or it has rung
	timer *time.Timer   // with the System clock
	stop  chan struct{} // with any other clock, while the alarm is set: stops the goroutine that waits
}

// Set sets the alarm for the time d after now on clock c, in place of any earlier time. With lease.Infinite
// it never rings. All calls must use the same clock. Set calls no method of the clock, so it may be called
// with locks held. The caller must soon call the returned function, without holding locks, because the
// method After of a clock may block.
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

// unset stops the alarm. The caller holds mu.
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
	a.at = time.Time{} // so that the alarm can be set for the same time again
	a.mu.Unlock()
	a.Func()
}
