package slots

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Waiters that see the same list take different free slots, as many as there are, and break different
// holders with lower priorities, but only while more waiters than slots remain.
func TestDecideTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		locked := map[int]holder{}
		for i := range n + 2 {
			if rapid.Bool().Draw(t, "locked") {
				locked[i] = holder{waiter{id: fmt.Sprint("h", i), priority: rapid.IntRange(0, 2).Draw(t, "priority"), ticket: 1}, rapid.Bool().Draw(t, "breaking"), false}
			}
		}
		var waiters []waiter
		for i := range rapid.IntRange(1, 8).Draw(t, "waiters") {
			waiters = append(waiters, waiter{id: fmt.Sprint("w", i), priority: rapid.IntRange(0, 2).Draw(t, "priority"), ticket: rapid.Uint64Range(0, 3).Draw(t, "ticket")})
		}
		taken, broken, free := map[int]bool{}, map[int]bool{}, n
		for i := range n {
			if _, ok := locked[i]; ok {
				free--
			}
		}
		for _, w := range waiters {
			s := decide(w, waiters, locked, n, 0)
			if s.take >= 0 {
				if _, ok := locked[s.take]; ok || s.take >= n || taken[s.take] {
					t.Fatalf("%v takes slot %d", w, s.take)
				}
				taken[s.take] = true
			}
			if i := s.breaks; i >= 0 {
				if locked[i].breaking || i >= n || broken[i] || locked[i].priority >= w.priority {
					t.Fatalf("%v breaks slot %d", w, i)
				}
				broken[i] = true
			}
		}
		if len(taken) != min(free, len(waiters)) {
			t.Fatalf("%d waiters take %d of %d free slots", len(waiters), len(taken), free)
		}
	})
}
