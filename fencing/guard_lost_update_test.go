package fencing_test

import (
	"errors"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A counter is a guarded number, which is too low if an update was lost.
type counter struct {
	guard           guard
	value, admitted int
}

// A holder adds to the counter several times. Each addition is a read and a write, and each of them
// is one step.
type holder struct {
	token    lease.Token
	advances bool
	sections int

	done int // the number of steps that are done
	read int
	out  bool // whether the holder was refused, so that it does nothing more
}

func (h *holder) steps() int {
	n := 2 * h.sections
	if h.advances {
		n++
	}
	return n
}

// step does the next step of h: the Advance, a read, or a write.
func (h *holder) step(c *counter) {
	i := h.done
	h.done++
	if h.advances {
		i--
	}
	switch {
	case h.out:
	case i < 0:
		h.out = c.guard.Advance(h.token) != nil
	case i%2 == 0:
		h.read = c.value // a read does not ask the guard
	default:
		h.out = c.guard.Do(h.token, func() error {
			c.value = h.read + 1
			c.admitted++
			return nil
		}) != nil
	}
}

// interleavings plays every order of the steps of the holders. It returns the number of orders, and
// the number of orders in which an update was lost.
func interleavings(newGuard func() guard, holders []holder) (all, lost int) {
	var order []int
	left := make([]int, len(holders))
	for i := range holders {
		left[i] = holders[i].steps()
	}
	var play func(togo int)
	play = func(togo int) {
		if togo == 0 {
			c := &counter{guard: newGuard()}
			hs := append([]holder(nil), holders...)
			for _, i := range order {
				hs[i].step(c)
			}
			all++
			if c.value != c.admitted {
				lost++
			}
			return
		}
		for i := range left {
			if left[i] > 0 {
				left[i]--
				order = append(order, i)
				play(togo - 1)
				order = order[:len(order)-1]
				left[i]++
			}
		}
	}
	total := 0
	for _, n := range left {
		total += n
	}
	play(total)
	return all, lost
}

func newGuard() guard { return new(fencing.Guard) }

// G2: if each holder calls Advance before its first read, no order of the steps loses an update.
// Without Advance, some orders lose an update, although no older write follows a newer write.
//
// SPEC G2.
func TestEveryInterleavingOfHolders(t *testing.T) {
	for _, c := range []struct {
		name    string
		holders []holder
		all     int
		lost    bool
	}{
		{"two holders, one section, without Advance", []holder{{token: tok(1), sections: 1}, {token: tok(2), sections: 1}}, 6, true},
		{"two holders, one section", []holder{{token: tok(1), advances: true, sections: 1}, {token: tok(2), advances: true, sections: 1}}, 20, false},
		{"only the newer one advances", []holder{{token: tok(1), sections: 2}, {token: tok(2), advances: true, sections: 2}}, 126, false},
		{"only the older one advances", []holder{{token: tok(1), advances: true, sections: 1}, {token: tok(2), sections: 1}}, 10, true},
		{"two holders, three sections", []holder{{token: tok(9), advances: true, sections: 3}, {token: tok(10), advances: true, sections: 3}}, 3432, false},
		{"three holders, one section, without Advance", []holder{{token: tok(9), sections: 1}, {token: tok(10), sections: 1}, {token: tok(11), sections: 1}}, 90, true},
		{"three holders, one section", []holder{{token: tok(9), advances: true, sections: 1}, {token: tok(10), advances: true, sections: 1}, {token: tok(11), advances: true, sections: 1}}, 1680, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, lost := interleavings(newGuard, c.holders)
			if all != c.all || (lost > 0) != c.lost {
				t.Errorf("%d of %d interleavings lost an update; want some: %v, of %d", lost, all, c.lost, c.all)
			}
			t.Logf("%d of %d interleavings lost an update", lost, all)
		})
	}
}

// Without Advance, this order loses an update: the new holder reads, the old holder writes, and the
// new holder overwrites the old holder's write.
//
// SPEC G2.
func TestLostUpdateWithoutAdvance(t *testing.T) {
	for _, advance := range []bool{false, true} {
		c := &counter{guard: newGuard()}
		older := &holder{token: tok(1), sections: 1}
		newer := &holder{token: tok(2), sections: 1, advances: advance}
		older.step(c) // reads 0
		if advance {
			newer.step(c)
		}
		newer.step(c) // reads 0
		older.step(c) // writes 1, if the guard admits the write
		newer.step(c) // writes 1
		if lost := c.value != c.admitted; lost == advance || older.out != advance {
			t.Errorf("advance %v: %d writes admitted, value %d, older refused: %v", advance, c.admitted, c.value, older.out)
		}
	}
}

// The test with all orders finds a guard whose Advance does nothing, and a missing guard.
func TestInterleavingsFindBrokenGuards(t *testing.T) {
	holders := []holder{{token: tok(9), advances: true, sections: 1}, {token: tok(10), advances: true, sections: 1}}
	for name, broken := range map[string]func() guard{
		"Advance does nothing": brokenGuards["Advance does nothing"].make,
		"no guard":             func() guard { return unguarded{} },
	} {
		if all, lost := interleavings(broken, holders); lost == 0 {
			t.Errorf("%s: none of %d interleavings lost an update", name, all)
		}
	}
}

type unguarded struct{}

func (unguarded) Advance(lease.Token) error              { return nil }
func (unguarded) Do(_ lease.Token, f func() error) error { return f() }
func (unguarded) Seen() lease.Token                      { return "" }

// After a new holder has called Advance, the guard refuses the earlier holder, and the mark never
// falls.
//
// SPEC G1.
func TestNewTermFencesOutTheOneBefore(t *testing.T) {
	var g fencing.Guard
	var record lease.Record
	var before lease.Token
	now := record.Until
	for term := range 20 {
		var err error
		record, err = lease.Step(record, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Owner: "worker", Duration: 1}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(record.Token()); err != nil {
			t.Fatalf("term %d: %v", term, err)
		}
		if err := g.Do(before, func() error { return nil }); term > 0 && !errors.Is(err, fencing.ErrStale) {
			t.Errorf("term %d: a write of the term before: %v, want ErrStale", term, err)
		}
		if g.Seen() != record.Token() {
			t.Errorf("term %d: Seen() = %q, want %q", term, g.Seen(), record.Token())
		}
		before, now = record.Token(), now.Add(1)
	}
}
