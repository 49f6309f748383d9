package slots

import (
	"testing"

	"github.com/fencedlease/lease/internal/check/planted"
)

// Each bug replaces a piece of code that occurs once in its file. At least one test must find it.
var plantedBugs = [][4]string{
	{"there is no queue", "machine.go", "if w.id != me.id && !has[w.id] && before(w, me) {", "if w.id == \"\" {"},
	{"the newest is first", "machine.go", "cmp.Compare(a.ticket, b.ticket)", "cmp.Compare(b.ticket, a.ticket)"},
	{"the lowest priority is first", "machine.go", "cmp.Compare(b.priority, a.priority)", "cmp.Compare(a.priority, b.priority)"},
	{"only the first slot is used", "machine.go", "	for i := range n {\n		if h, ok := locked[i]; !ok {", "	for i := range min(n, 1) {\n		if h, ok := locked[i]; !ok {"},
	{"a waiter that has a slot counts", "machine.go", "&& !has[w.id] &&", "&& true &&"},
	{"a slot that breaks is not for a waiter ahead", "machine.go", "rank -= len(free) + ending", "rank -= len(free)"},
	{"a holder of the same priority is broken", "machine.go", "locked[held[rank]].priority < me.priority", "locked[held[rank]].priority <= me.priority"},
	{"the highest priority is broken", "machine.go", "cmp.Compare(locked[a].priority, locked[b].priority)", "cmp.Compare(locked[b].priority, locked[a].priority)"},
	{"the lease of a stranger is broken", "machine.go", "} else if !h.foreign {", "} else {"},
	{"a waiter that has crashed blocks the queue", "machine.go", "return int(longest / (patience * m.o.Interval))", "return int(longest / (patience * m.o.Interval) / 1000)"},
	{"a short job of another looks like a free slot", "machine.go", "		clear(m.freeSince)\n", ""},
	{"the Priority counts at once", "machine.go", "return min(m.o.Priority, 0)", "return m.o.Priority"},
	{"the Priority counts from the call of Run", "slots.go", "began: s.began, me:", "began: s.o.Session.Clock.Now(), me:"},
	{"each poll draws a new ticket", "machine.go", "if !m.queued {", "if true {"},
	{"SetN breaks what another process knows of", "list.go", "n = max(n, m)", "n = max(n, min(m, 0))"},
	{"the first number of a process counts", "list.go", "			m = later\n", "			m = max(m, later)\n"},
	{"the process of another group counts", "list.go", "ok = ok && member.IsOf(w.id, s.prefix)", "ok = ok && s.prefix != \"\""},
	{"a waiter with two leases counts twice", "list.go", "if !slices.ContainsFunc(l.waiters", "if true || !slices.ContainsFunc(l.waiters"},
	{"a slot above n is worked in", "run.go", "if i >= int(r.n.Load()) {", "if i < 0 {"},
	{"the place in the queue stays during the work", "run.go", "			r.waiting = nil\n			r.leaving.Go(func() { _ = waiting.End(ctx) })\n", "			_ = waiting\n"},
	{"Run does not leave the queue", "run.go", "	if r.waiting != nil {\n		_ =", "	if false {\n		_ ="},
	{"excess slots stay after a failed SetN", "slots.go", "	s.excess.Store(true)\n", ""},
	{"SetN announces nothing", "announce.go", "	return a.lease.Show(ctx, ownerOf(s.o.Session.Owner, me))", "	return nil"},
	{"the announcement stays", "announce.go", "		_ = a.lease.End(ctx)\n", ""},
	{"watches begin again at each poll", "watches.go", "if again && !ws.lost.Load() {", "if again && false {"},
	{"a lost watch is not begun again", "watches.go", "				ws.lost.Store(true)\n				return\n			}\n			ws.signal()", "				return\n			}\n			ws.signal()"},
	{"hopeless errors are tried again", "slots.go", "case r.outage.Over(s.o.Session.Clock.Now(), err):", "case r.outage.Over(s.o.Session.Clock.Now(), nil):"},
	{"excess slots are forgotten while others know of more", "slots.go", "err == nil && len(excess(l.locked, n)) == 0 && int(s.n.Load()) == n", "err == nil && int(s.n.Load()) == n"},
	{"SetN breaks the lease of a stranger", "machine.go", "i >= n && !h.breaking && !h.foreign", "i >= n && !h.breaking"},
}

// Every planted bug fits the code. With -planted it is also compiled, and must be found:
//
//	go test -run Planted ./slots -planted .
func TestPlanted(t *testing.T) { planted.Run(t, plantedBugs) }
