package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/session"
)

// The handlers of OnBreaking are called once for a break that is not shortened, even if the Session assumes
// less clock drift than its store. They are called again if the break is shortened by more than a
// difference of the clocks can explain. SPEC H13c.
func TestBreakOverAStoreWithMoreDrift(t *testing.T) {
	for _, drift := range []float64{0.0005, 0.001, 0.002, 0.01, 0.05} {
		for _, shorter := range []time.Duration{0, 10 * time.Second, 15 * time.Minute} {
			t.Run(fmt.Sprint(drift, " ", shorter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					want := 1
					if shorter > 0 {
						want = 2
					}
					if notified, _ := breakWithDrift(t, drift, shorter); notified != want {
						t.Errorf("called %d times, want %d", notified, want)
					}
				})
			})
		}
	}
}

// Even if the store assumes much more clock drift than the Session, the Session renews at the usual pace
// during a break, and not faster and faster towards its end. SPEC H13a.
func TestRenewalsOverAStoreWithMuchMoreDrift(t *testing.T) {
	for _, drift := range []float64{0.05, 0.2, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			if _, exchanges := breakWithDrift(t, drift, 0); exchanges > 1400 {
				t.Errorf("with a drift of %v: %d exchanges in 20 minutes, at one renewal a second", drift, exchanges)
			}
		})
	}
}

// breakWithDrift breaks a lease with a grace period of 20 minutes and, if shorter is positive, shortens the
// break two minutes later. It returns how often the holder's handlers were called, and how many requests
// the engine got.
func breakWithDrift(t *testing.T, drift float64, shorter time.Duration) (notified, exchanges int) {
	e := newFake()
	o := engine.Options{MaxClockDrift: drift}
	breaker := newStore(t, e, o).Authority()
	s := hold(t, newStore(t, e, o).Authority(), session.Options{Duration: time.Hour, RenewInterval: time.Second, MaxClockDrift: 0.001})
	var calls atomic.Int64
	s.OnBreaking(func(time.Time) { calls.Add(1) })
	do(t, breaker, breaks(20*time.Minute), 0)
	ends := time.Now().Add(20 * time.Minute)
	time.Sleep(2 * time.Minute)
	if shorter > 0 {
		ends = ends.Add(-shorter)
		do(t, breaker, breaks(time.Until(ends)), 0)
	}
	time.Sleep(time.Until(ends))
	synctest.Wait()
	if s.CheckAlive() {
		t.Error("alive after the end of the break")
	}
	return int(calls.Load()), e.exchanges
}
