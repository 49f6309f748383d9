package slots

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
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

// A preferred leader that stops or crashes within PriorityAfter of New does not stop the one that works. One that
// stays up has its turn when PriorityAfter is over, however late it has called Run. Another one of the same priority does not
// stop it, also if it has taken the slot before its priority counted.
func TestPriorityAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		low, high, equal := h.slots(h.store.Authority(), "low", 1, 0), h.slots(h.store.Authority(), "high", 1, 10), h.slots(h.store.Authority(), "equal", 1, 10)
		high.o.PriorityAfter = 3 * time.Minute
		early := make(chan error, 1)
		go func() { early <- high.Run(t.Context(), h.work("high", time.Minute)) }()
		time.Sleep(time.Second)
		if err := equal.Run(t.Context(), h.work("equal", 0)); err != nil || <-early != nil {
			t.Errorf("one of the same priority stops it: %v", err)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- low.Run(t.Context(), h.work("low", time.Hour)) }()
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := high.Run(ctx, h.work("high", time.Hour)); !errors.Is(err, context.DeadlineExceeded) || len(stopped) > 0 {
				t.Errorf("after %v, the preferred one returns %v", time.Since(high.began), err)
			}
			cancel()
		}
		if err := high.Run(t.Context(), h.work("high", 0)); err != nil || time.Since(high.began) > high.o.PriorityAfter+high.o.Grace+2*high.o.Interval {
			t.Errorf("the preferred one had its turn after %v: %v", time.Since(high.began), err)
		}
		if err := <-stopped; !errors.Is(err, lease.ErrBroken) {
			t.Errorf("the other one returns %v", err)
		}
	})
}
