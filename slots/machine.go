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
	ticket   uint64 // higher than the tickets of all waiters that were in the queue before it
	n        int    // the number of slots that its process knows of
	process  string // the ID of its process
	number   int    // of its lease in the queue
	owner    string // of its lease, for the log
}

// A holder is a call of Run that has a slot.
type holder struct {
	waiter
	breaking bool
	foreign  bool // a program that does not use this package, so its lease is never broken
}

// A machine makes the decisions of one call of Run. Its inputs are the lists of the leases, the number of
// slots, and the time. From these inputs, the machine computes the next step, and the type run carries it
// out. The machine has no clock, no lock and no goroutine.
//
// The files testdata/*.txt show what a machine does. TestPlanted replaces pieces of its code, so each of them
// must occur only once in its file.
type machine struct {
	o         *Options  // complete
	began     time.Time // when New was called
	me        waiter    // as the lease in the queue should show it
	once      bool      // whether this is a call of TryRun
	queued    bool      // whether this call is in the queue, so that its ticket must not change
	queue     []string  // the IDs of the waiters ahead at the last poll
	freeSince map[int]time.Time
}

// A step is what a call of Run should do after a list.
type step struct {
	rank   int    // number of waiters ahead of this one
	ahead  waiter // the last of the waiters ahead
	take   int    // the slot to acquire, or -1
	breaks int    // the slot to break, or -1; always -1 for a call of TryRun
	why    string // the reason for the break
	full   bool   // whether each slot is taken, so that a call of TryRun ends
}

func (m *machine) poll(l listing, n int, now time.Time) step {
	m.me.n, m.me.priority = n, m.priority(now)
	if !m.queued {
		for _, w := range l.waiters {
			m.me.ticket = max(m.me.ticket, w.ticket)
		}
		m.me.ticket++
	}
	s := decide(m.me, l.waiters, l.locked, n, m.overdue(l, n, now))
	if m.once {
		s.breaks = -1
	}
	if s.breaks >= 0 {
		s.why = fmt.Sprintf("a waiter has priority %d, and the holder %d", m.me.priority, l.locked[s.breaks].priority)
	}
	return s
}

// The method priority returns the Priority that this call has at the given time. Until PriorityAfter has
// passed, a Priority above 0 counts as 0.
func (m *machine) priority(now time.Time) int {
	if now.Sub(m.began) < m.o.PriorityAfter {
		return min(m.o.Priority, 0)
	}
	return m.o.Priority
}

// If a slot has been free for this number of Intervals, the next call in the queue takes the slot, because
// the call at the head of the queue may belong to a process that has crashed.
const patience = 3

// The method overdue returns how many calls at the head of the queue this call should overtake. These calls
// had enough time to take a free slot, but have not taken it. When a call has left the queue, it may have
// held a slot between two polls. In that case, the method therefore begins again to measure for how long each
// slot has been free.
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

// toWatch returns the names of the leases to watch after a step. The first waiter watches all slots. Every
// waiter except the first one watches only the lease of its predecessor in the queue. When the predecessor
// gets a slot, it leaves the queue.
func (s step) toWatch(prefix string, n int) (names []string) {
	if s.rank > 0 {
		return []string{waiterName(prefix, s.ahead.number)}
	}
	for i := range n {
		names = append(names, slotName(prefix, i))
	}
	return names
}

// decide returns the next step of the waiter me. If two waiters see the same list of the leases, and neither
// overtakes the other, they never choose the same free slot, and never break the same lease. The last
// parameter is the result of the method overdue: the number of waiters that this waiter should overtake.
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
	s.full = len(free) == 0
	rank := max(0, s.rank-overdue)
	if rank < len(free) {
		s.take = free[rank]
		return s
	}
	// Slots that are free, or whose leases are already breaking, go to the first waiters in the queue. Only
	// the waiters after those have to break another lease.
	rank -= len(free) + ending
	slices.SortFunc(held, func(a, b int) int {
		return cmp.Or(cmp.Compare(locked[a].priority, locked[b].priority), cmp.Compare(b, a))
	})
	if rank >= 0 && rank < len(held) && locked[held[rank]].priority < me.priority {
		s.breaks = held[rank]
	}
	return s
}

func excess(locked map[int]holder, n int) (slots []int) {
	for i, h := range locked {
		if i >= n && !h.breaking && !h.foreign {
			slots = append(slots, i)
		}
	}
	return slots
}

// before reports whether a is ahead of b in the queue.
func before(a, b waiter) bool {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.ticket, b.ticket), strings.Compare(a.id, b.id)) < 0
}
