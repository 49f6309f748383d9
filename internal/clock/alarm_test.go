package clock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// rung is an Alarm that notes when it rings.
type rung struct {
	clock.Alarm
	clock lease.Clock
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func newRung(c lease.Clock) *rung {
	r := &rung{clock: c, began: time.Now()}
	r.Func = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at = append(r.at, time.Since(r.began))
	}
	return r
}

func (r *rung) set(d time.Duration) { r.Set(r.clock, time.Now(), d)() }

// expect waits until all other goroutines are blocked, and checks that the alarm rang at the times in want.
func (r *rung) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.at) != len(want) {
		t.Fatalf("it rang at %v, want %v", r.at, want)
	}
	for i := range want {
		if r.at[i] != want[i] {
			t.Fatalf("it rang at %v, want %v", r.at, want)
		}
	}
}

// An alarm rings once, at the time that it was last set for.
func TestAlarm(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		r := newRung(c)
		r.set(time.Minute)
		r.set(2 * time.Second) // earlier
		time.Sleep(time.Second)
		r.set(3 * time.Second) // later
		time.Sleep(time.Hour)
		r.expect(t, 4*time.Second)
		r.set(0) // and once more
		r.expect(t, 4*time.Second, time.Hour+time.Second)
	})
}

// An alarm that was set with lease.Infinite does not ring.
func TestAlarmUnset(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		r := newRung(c)
		r.set(time.Second)
		r.set(lease.Infinite)
		time.Sleep(time.Hour)
		r.expect(t)
		r.set(time.Second)
		time.Sleep(time.Second)
		r.expect(t, time.Hour+time.Second)
	})
}

// An alarm that is set twice for the same time rings once. It can then be set for the same time again.
func TestAlarmForTheSameTime(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		r := newRung(c)
		r.set(time.Second)
		r.set(time.Second)
		time.Sleep(time.Second)
		r.expect(t, time.Second)
		r.set(0)
		r.expect(t, time.Second, time.Second)
	})
}

// own is a clock that is not the System clock.
type own struct{ clock.System }

var clocks = map[string]lease.Clock{"system": clock.System{}, "own": own{}}

// each runs a test with each clock, in a bubble.
func each(t *testing.T, f func(t *testing.T, c lease.Clock)) {
	for name, c := range clocks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, c) })
		})
	}
}
