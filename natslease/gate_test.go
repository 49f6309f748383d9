package natslease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/engines"
)

// Renewals overtake all other writes, each kind keeps its order, and a write whose context ends while
// it waits is never sent and keeps no place.
func TestGateSendsRenewalsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		for range mostWrites {
			if err := g.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var order []string
		wait := func(ctx context.Context, what string) {
			go func() {
				if err := g.enter(ctx); err != nil {
					what += " given up"
				}
				order = append(order, what) // one goroutine at a time is let in
			}()
			synctest.Wait()
		}
		short, cancel := context.WithCancel(t.Context())
		wait(t.Context(), "acquire 1")
		wait(short, "acquire 2")
		wait(t.Context(), "acquire 3")
		wait(engines.MarkUrgent(t.Context()), "renewal 1")
		wait(engines.MarkUrgent(t.Context()), "renewal 2")
		cancel()
		synctest.Wait()
		for range 4 {
			g.leave(true)
			synctest.Wait()
		}
		if want := []string{"acquire 2 given up", "renewal 1", "renewal 2", "acquire 1", "acquire 3"}; !slices.Equal(order, want) {
			t.Errorf("%q", order)
		}
		for range mostWrites {
			g.leave(true)
		}
		if g.underWay != 0 {
			t.Errorf("%d are under way at the end", g.underWay)
		}
		if err := g.enter(short); !errors.Is(err, context.Canceled) {
			t.Errorf("entered after the end of its context: %v", err)
		}
	})
}

// A gate that has measured 100 writes a second admits leases whose renewals need 50. A lease that it
// holds is always admitted. Leases that are released, lost to another or not renewed make room, and the
// measurement stops counting after a while.
func TestGateRefusesWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		const d, fit = 10 * time.Second, 166 // 166 x 3 / 10 s = 49.8
		held := func(i int) lease.Record { return lease.Record{State: lease.Leased, Duration: d} }
		name := func(i int) string { return fmt.Sprint(i) }
		if err := g.admit("x", d); err != nil {
			t.Errorf("before a measurement: %v", err)
		}
		measure := func(each time.Duration, writes int) {
			for range mostWrites {
				_ = g.enter(t.Context())
			}
			for range writes {
				time.Sleep(each)
				g.leave(true)
				_ = g.enter(t.Context())
			}
			for range mostWrites {
				g.leave(true)
			}
		}
		measure(10*time.Millisecond, 100)
		measure(time.Second, 1) // a pause
		if rate, known := g.rate(time.Now()); !known || rate < 99 || rate > 105 {
			t.Fatalf("measured %v of %v", rate, g.rates)
		}
		g.rates = []float64{7, 100, 101}
		for i := range fit {
			if err := g.admit(name(i), d); err != nil {
				t.Fatalf("lease %d: %v", i, err)
			}
			g.note(name(i), held(i))
		}
		refused := func(what string, want bool) {
			t.Helper()
			if err := g.admit("one more", d); (err != nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("full", true)
		if err := g.admit("0", d); err != nil {
			t.Errorf("held: %v", err)
		}
		g.note("0", lease.Record{State: lease.Available})
		refused("after a release", false)
		g.note("0", held(0))
		refused("full again", true)
		g.lost("1")
		refused("after a loss", false)
		g.note("1", held(1))
		time.Sleep(d + time.Second)
		refused("not renewed", false)
		for i := range fit {
			g.note(name(i), held(i))
		}
		refused("full once more", true)
		time.Sleep(measureKeep)
		for i := range fit {
			g.note(name(i), held(i))
		}
		refused("after the measurement has aged", false)
	})
}

// Only a write that has waited says that others were under way.
func TestGateSaysWhyItDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.enter(ended); err != context.Canceled {
			t.Errorf("with no write under way: %v", err)
		}
		for range mostWrites {
			if err := g.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.enter(short); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "64 writes of this store are under way: context deadline exceeded" {
			t.Errorf("with %d writes under way: %v", mostWrites, err)
		}
	})
}
