package slots

import (
	"cmp"
	"slices"
	"strings"
)

// A waiter is a call of Run that waits for a slot.
type waiter struct {
	id       string
	priority int
	ticket   uint64 // higher than those of all waiters that it saw when it came
	n        int    // of slots that its process knows of
	process  string // identifies its process
	number   int    // of its lease in the queue
	owner    string // of its lease, for people
}

// A holder is a call of Run that has a slot.
type holder struct {
	waiter
	breaking bool
	foreign  bool // not a holder of this package: never broken
}

// A step is what a waiter should do after a list.
type step struct {
	rank   int    // number of waiters that come first
	ahead  waiter // the last of them
	take   int    // the slot to acquire, or -1
	breaks int    // the slot to break, or -1
}

// decide returns the next step of the waiter me. All waiters that see the same list agree: each takes
// another free slot, and breaks another holder. The number overdue is how many waiters ahead have not
// taken the slots that were free for them.
func decide(me waiter, waiters []waiter, locked map[int]holder, n, overdue int) step {
	s := step{take: -1, breaks: -1}
	has := map[string]bool{}
	for _, h := range locked {
		has[h.id] = true
	}
	for _, w := range waiters {
		if w.id != me.id && !has[w.id] && before(w, me) {
			if s.rank++; s.rank == 1 || before(s.ahead, w) {
				s.ahead = w
			}
		}
	}
	var free, held []int
	ending := 0
	for i := range n {
		if h, ok := locked[i]; !ok {
			free = append(free, i)
		} else if h.breaking {
			ending++
		} else if !h.foreign {
			held = append(held, i)
		}
	}
	rank := max(0, s.rank-overdue)
	if rank < len(free) {
		s.take = free[rank]
		return s
	}
	// A slot that breaks already is for a waiter ahead, or for this one.
	rank -= len(free) + ending
	slices.SortFunc(held, func(a, b int) int {
		return cmp.Or(cmp.Compare(locked[a].priority, locked[b].priority), cmp.Compare(b, a))
	})
	if rank >= 0 && rank < len(held) && locked[held[rank]].priority < me.priority {
		s.breaks = held[rank]
	}
	return s
}

// excess returns the slots to break that are not among the first n.
func excess(locked map[int]holder, n int) (slots []int) {
	for i, h := range locked {
		if i >= n && !h.breaking && !h.foreign {
			slots = append(slots, i)
		}
	}
	return slots
}

// before reports whether a gets a slot earlier than b.
func before(a, b waiter) bool {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.ticket, b.ticket), strings.Compare(a.id, b.id)) < 0
}
