package fencing_test

import (
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
