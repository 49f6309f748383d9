package slots

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Waiters work in the order of their priorities and then of their arrival, also if the work is shorter than
// the Interval, so that a waiter may find the slot free again and again while others take it in between. With
// more than one slot, callers whose turns come together may begin in any order.
func TestTurns(t *testing.T) {
	for _, watches := range []bool{false, true} {
		for _, work := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
			for range 2 {
				seed := rand.Uint64()
				inHouse(t, func(t *testing.T, h *house) { turns(h, seed, watches, work) })
			}
		}
	}
}

func turns(h *house, seed uint64, watches bool, work time.Duration) {
	a := h.store
	if !watches {
		a = struct {
			lease.Authority
			lease.Lister
		}{struct{ lease.Authority }{a}, a.(lease.Lister)}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	type caller struct{ priority, place int }
	var mu sync.Mutex
	var worked []caller
	h.run(h.over(a, "first", 1, 9), 3*time.Minute)
	for i := range 15 {
		c := caller{random.IntN(3), i}
		s := h.over(a, "waiter", 1, c.priority)
		h.all.Go(func() {
			err := s.Run(h.ctx, func(ctx context.Context, tok lease.Token) error {
				mu.Lock()
				worked = append(worked, c)
				mu.Unlock()
				return h.work(s, work)(ctx, tok)
			})
			if err != nil {
				h.Error(err)
			}
		})
		time.Sleep(3 * time.Second)
	}
	h.all.Wait()
	inTurn := slices.IsSortedFunc(worked, func(a, b caller) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		return a.place - b.place
	})
	if !inTurn || h.most > 1 {
		h.Errorf("seed %d, watches %v, work of %v: worked in the order %v (priority, place), %d at once", seed, watches, work, worked, h.most)
	}
}

// A preferred leader that stops or crashes within PriorityAfter of New does not stop the one that works. One that
// stays up has its turn when PriorityAfter is over, however late it has called Run. Another one of the same priority does not
// stop it, also if it has taken the slot before its priority counted.
func TestPriorityAfter(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		low, high, equal := h.slots("low", 1, 0), h.slots("high", 1, 10), h.slots("equal", 1, 10)
		high.o.PriorityAfter = 3 * time.Minute
		early, _ := h.run(high, time.Minute)
		if err := equal.Run(h.ctx, h.work(equal, 0)); err != nil || <-early != nil {
			t.Errorf("one of the same priority stops it: %v", err)
		}
		stopped, _ := h.run(low, time.Hour)
		for range 5 {
			ctx, cancel := context.WithTimeout(h.ctx, 20*time.Second)
			if err := high.Run(ctx, h.work(high, time.Hour)); !errors.Is(err, context.DeadlineExceeded) || len(stopped) > 0 {
				t.Errorf("after %v, the preferred one returns %v", time.Since(high.began), err)
			}
			cancel()
		}
		if err := high.Run(h.ctx, h.work(high, 0)); err != nil || time.Since(high.began) > high.o.PriorityAfter+high.o.Grace+2*high.o.Interval {
			t.Errorf("the preferred one had its turn after %v: %v", time.Since(high.began), err)
		}
		if err := <-stopped; !errors.Is(err, lease.ErrBroken) {
			t.Errorf("the other one returns %v", err)
		}
	})
}
