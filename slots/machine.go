package slots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
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

// A machine makes the decisions of one call of Run. From each list, the number of slots that the process knows
// of and the time, it computes a step, which a run carries out. It has no clock, no lock and no goroutine.
//
// testdata/*.txt show what it does, and TestPlanted replaces pieces of its source code, each of which must occur
// once in its file.
type machine struct {
	o         *Options  // complete
	began     time.Time // when New was called
	me        waiter    // as the lease in the queue should show it
	queued    bool      // whether the queue has a place for this call, so its ticket stays
	queue     []string  // the waiters ahead at the last poll
	freeSince map[int]time.Time
}

// A step is what a call of Run should do after a list.
type step struct {
	rank   int    // number of waiters that come first
	ahead  waiter // the last of them
	take   int    // the slot to acquire, or -1
	breaks int    // the slot to break, or -1
	why    string // it should be broken
}

// poll returns the next step after a list, if the process knows of n slots.
func (m *machine) poll(l listing, n int, now time.Time) step {
	m.me.n, m.me.priority = n, m.priority(now)
	if !m.queued {
		for _, w := range l.waiters {
			m.me.ticket = max(m.me.ticket, w.ticket)
		}
		m.me.ticket++
	}
	s := decide(m.me, l.waiters, l.locked, n, m.overdue(l, n, now))
	if s.breaks >= 0 {
		s.why = fmt.Sprintf("a waiter has priority %d, and the holder %d", m.me.priority, l.locked[s.breaks].priority)
	}
	return s
}

// priority returns what the Priority counts as now.
func (m *machine) priority(now time.Time) int {
	if now.Sub(m.began) < m.o.PriorityAfter {
		return min(m.o.Priority, 0)
	}
	return m.o.Priority
}

// patience is the number of Intervals for which a slot may stay free before the next call in the queue
// takes it, because the call ahead may belong to a process that has crashed.
const patience = 3

// overdue returns how many calls ahead in the queue have not taken a slot although one was free. A slot
// that is free at two polls may have been taken and released in between. Then a call has left the
// queue, and the time begins again.
func (m *machine) overdue(l listing, n int, now time.Time) int {
	var queue []string
	for _, w := range l.waiters {
		if w.id != m.me.id && before(w, m.me) {
			queue = append(queue, w.id)
		}
	}
	if slices.ContainsFunc(m.queue, func(id string) bool { return !slices.Contains(queue, id) }) {
		clear(m.freeSince)
	}
	m.queue = queue
	longest := time.Duration(0)
	for i := range n {
		if _, ok := l.locked[i]; ok {
			delete(m.freeSince, i)
		} else if since, ok := m.freeSince[i]; ok {
			longest = max(longest, now.Sub(since))
		} else {
			m.freeSince[i] = now
		}
	}
	return int(longest / (patience * m.o.Interval))
}

// toWatch returns the leases to watch after a step: all slots for the first waiter, and for any other the lease
// of the waiter ahead of it, which leaves the queue when it has a slot.
func (s step) toWatch(prefix string, n int) (names []string) {
	if s.rank > 0 {
		return []string{waiterName(prefix, s.ahead.number)}
	}
	for i := range n {
		names = append(names, slotName(prefix, i))
	}
	return names
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
	// A slot whose lease is breaking already will go to a waiter ahead, or to this one.
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
