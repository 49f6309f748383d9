package slots

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/session"
)

// A list has each waiter once, though it has two leases for a moment, and the leases of another group are those
// of strangers, or are left out.
func TestList(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		own, other := member.ID(lease.ID{1}, "x/"), member.ID(lease.ID{2}, "x/waiting/")
		for name, owner := range map[string]string{
			waiterName("x/", 3): ownerOf("", waiter{id: own, process: "p", n: 4}), waiterName("x/", 5): ownerOf("", waiter{id: own, process: "p", n: 5}),
			waiterName("x/", 7): ownerOf("", waiter{id: other, process: "q", n: 9}), announcedName("x/", 1): ownerOf("", waiter{id: other, process: "q", n: 9}),
			slotName("x/", 2): ownerOf("", waiter{id: other, process: "q", n: 9}), slotName("x/", 0): "somebody", "x/slots/none": "somebody",
		} {
			s, err := session.New(h.store, name, &session.Options{Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			if ok, err := s.Acquire(t.Context()); !ok {
				t.Fatal(err)
			}
		}
		l, err := h.slots("a", 1, 0).list(t.Context())
		if err != nil || len(l.waiters) != 1 || l.waiters[0].id != own || len(l.locked) != 2 || !l.locked[0].foreign || !l.locked[2].foreign || l.largest("a", 1) != 5 {
			t.Errorf("the list is %+v: %v", l, err)
		}
	})
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
