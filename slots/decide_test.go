package slots

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	h := func(priority int) holder { return holder{waiter: waiter{id: "h", priority: priority}} }
	breaking := holder{breaking: true}
	me := waiter{id: "me", ticket: 5}
	high := waiter{id: "me", ticket: 5, priority: 1}
	ahead, behind := waiter{id: "a", ticket: 4}, waiter{id: "b", ticket: 6}
	for _, c := range []struct {
		text    string
		me      waiter
		waiters []waiter
		locked  map[int]holder
		n       int
		overdue int
		want    string
	}{
		{"all free", me, nil, nil, 3, 0, "{0 0 -1}"},
		{"second in the queue", me, []waiter{ahead, behind, me}, nil, 3, 0, "{1 1 -1}"},
		{"a waiter ahead needs the last slot", me, []waiter{ahead}, map[int]holder{0: h(0)}, 2, 0, "{1 -1 -1}"},
		{"the waiter ahead seems to have crashed", me, []waiter{ahead}, map[int]holder{0: h(0)}, 2, 1, "{1 1 -1}"},
		{"the waiter ahead has a slot already", me, []waiter{{id: "h", ticket: 1}}, map[int]holder{0: h(0)}, 2, 0, "{0 1 -1}"},
		{"full, same priority", me, nil, map[int]holder{0: h(0)}, 1, 0, "{0 -1 -1}"},
		{"full, higher priority", high, []waiter{ahead}, map[int]holder{0: h(0)}, 1, 0, "{0 -1 0}"},
		{"the lowest is broken", high, nil, map[int]holder{0: h(0), 1: h(-1), 2: h(1)}, 3, 0, "{0 -1 1}"},
		{"another holder for the second", high, []waiter{{id: "a", priority: 1}}, map[int]holder{0: h(0), 1: h(-1), 2: h(1)}, 3, 0, "{1 -1 0}"},
		{"one break is enough", high, nil, map[int]holder{0: h(0), 1: breaking}, 2, 0, "{0 -1 -1}"},
		{"foreign holders stay", high, nil, map[int]holder{0: {foreign: true}}, 1, 0, "{0 -1 -1}"},
		{"only SetN breaks slots that are too many", me, nil, map[int]holder{0: h(0), 2: h(0), 3: breaking}, 2, 0, "{0 1 -1}"},
	} {
		s := decide(c.me, c.waiters, c.locked, c.n, c.overdue)
		if got := fmt.Sprintf("{%d %d %v}", s.rank, s.take, s.breaks); got != c.want || s.rank > 0 && s.ahead.id != ahead.id {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

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
