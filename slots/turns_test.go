package slots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// polling is an authority without watches.
func polling(a lease.Authority) lease.Authority {
	return struct {
		lease.Authority
		lease.Lister
	}{struct{ lease.Authority }{a}, a.(lease.Lister)}
}

// Waiters work in the order of their priorities and then of their arrival, also if the work is shorter than
// the Interval, so that a waiter may find the slot free again and again while others take it in between. With
// more than one slot, callers whose turns come together may begin in any order.
func TestTurns(t *testing.T) {
	for _, watches := range []bool{false, true} {
		for _, work := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
			for range 2 {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) { turns(t, seed, watches, work) })
			}
		}
	}
}

func turns(t *testing.T, seed uint64, watches bool, work time.Duration) {
	h := newHouse(t)
	a := h.store.Authority()
	if !watches {
		a = polling(a)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	type caller struct{ priority, place int }
	var mu sync.Mutex
	var worked []caller
	var all sync.WaitGroup
	first := h.slots(a, "first", 1, 9)
	all.Go(func() { _ = first.Run(t.Context(), h.work("first", 3*time.Minute)) })
	time.Sleep(time.Second)
	for i := range 15 {
		c := caller{random.IntN(3), i}
		s := h.slots(a, "waiter", 1, c.priority)
		all.Go(func() {
			err := s.Run(t.Context(), func(ctx context.Context, tok lease.Token) error {
				mu.Lock()
				worked = append(worked, c)
				mu.Unlock()
				return h.work("waiter", work)(ctx, tok)
			})
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(3 * time.Second)
	}
	all.Wait()
	inTurn := slices.IsSortedFunc(worked, func(a, b caller) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		return a.place - b.place
	})
	if !inTurn || h.most > 1 {
		t.Errorf("seed %d, watches %v, work of %v: worked in the order %v (priority, place), %d at once", seed, watches, work, worked, h.most)
	}
}

// A preferred leader that crashes soon after each start does not stop the one that works. One that stays up
// has its turn when PriorityAfter is over.
func TestPreferredLeaderCrashes(t *testing.T) {
	for _, c := range []struct {
		up      time.Duration
		nobody  time.Duration // the longest time in all in which nobody leads
		leads   int           // how often the preferred one leads
		crashes int
	}{
		{up: 10 * time.Second, nobody: 0, leads: 0, crashes: 20},
		{up: 100 * time.Second, nobody: 0, leads: 0, crashes: 20},
		{up: 10 * time.Minute, nobody: 20 * 40 * time.Second, leads: 20, crashes: 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			low := h.slots(h.store.Authority(), "low", 1, 0)
			all.Go(func() {
				for ctx.Err() == nil {
					_ = low.Run(ctx, h.work("low", time.Hour))
				}
			})
			time.Sleep(time.Minute)
			nobody := 0
			watch := func(d time.Duration) {
				for range d / time.Second {
					time.Sleep(time.Second)
					if h.working() == "" {
						nobody++
					}
				}
			}
			for range c.crashes {
				var crashed atomic.Bool
				a := leasefault.Script(h.store.Authority(), leasefault.Always(lease.Action(0), leasefault.If(crashed.Load, leasefault.LoseRequest)))
				high, err := New(a, "x/", 1, &Options{Priority: 10, Session: &session.Options{Owner: "high", Logger: low.o.Session.Logger}})
				if err != nil {
					t.Fatal(err)
				}
				up, crash := context.WithCancel(ctx)
				all.Go(func() { _ = high.Run(up, h.work("high", time.Hour)) })
				watch(c.up)
				crashed.Store(true)
				crash()
				watch(10 * time.Second)
			}
			cancel()
			all.Wait()
			t.Logf("up for %v: nobody leads for %ds of %v; the preferred one leads %d times", c.up, nobody, time.Duration(c.crashes)*(c.up+10*time.Second), h.grants["high"])
			if time.Duration(nobody)*time.Second > c.nobody || h.grants["high"] != c.leads {
				t.Errorf("up for %v: nobody leads for %ds, the preferred one leads %d times", c.up, nobody, h.grants["high"])
			}
		})
	}
}

// Processes of equal priorities do not stop each other, and one with a lower priority does not stop one with a
// higher one, also if one of them has taken the slot before its priority counted.
func TestPriorityAfterStopsNobodyElse(t *testing.T) {
	for _, priorities := range [][2]int{{0, 0}, {1, 1}, {2, 1}, {1, 0}, {0, -1}} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var all sync.WaitGroup
			for i, priority := range priorities {
				s := h.slots(h.store.Authority(), fmt.Sprint(i), 1, priority)
				s.o.PriorityAfter = 2 * time.Minute
				all.Go(func() {
					for ctx.Err() == nil {
						if err := s.Run(ctx, h.work(fmt.Sprint(i), 2*time.Hour)); errors.Is(err, lease.ErrBroken) {
							t.Errorf("priorities %v: the work of process %d was broken after %v", priorities, i, time.Since(s.began))
						}
					}
				})
				time.Sleep(time.Second)
			}
			all.Wait()
		})
	}
}
