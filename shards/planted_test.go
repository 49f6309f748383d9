package shards

import (
	"testing"

	"github.com/fencedlease/lease/internal/check/planted"
)

// Each bug replaces a piece of code that occurs once in its file. At least one test must find it.
var plantedBugs = [][4]string{
	{"the share is always rounded up", "assign.go", "range rest[:min(left, len(rest))]", "range rest"},
	{"those that have more do not keep it", "assign.go", "cmp.Compare(last(a), last(b))", "cmp.Compare(last(b), last(a))"},
	{"weights do not count", "assign.go", "int64(n) * int64(m.Weight)\n", "int64(n) * int64(sum/len(rest))\n"},
	{"a full process gets more", "assign.go", "if m.Max == 0 || m.Max > left", "if m.Max >= 0 || m.Max > left"},
	{"the oldest shards are given", "assign.go", "cmp.Compare(b.order, a.order)", "cmp.Compare(a.order, b.order)"},
	{"running work moves before free shards", "assign.go", "cmp.Compare(a.holder, b.holder), cmp.Compare(b.order", "cmp.Compare(b.holder, a.holder), cmp.Compare(b.order"},
	{"a receiver gets every shard", "assign.go", "lacks[to]--", "lacks[to] += 0"},
	{"the first poll acquires", "poll.go", "	if first {\n		return\n	}\n", "	_ = first\n"},
	{"one shard is taken at each poll", "poll.go", "if mv.to == m.id && (allKnow", "if len(do.take) == 0 && mv.to == m.id && (allKnow"},
	{"all processes take a free shard", "poll.go", "if mv.to == m.id && (allKnow", "if (allKnow"},
	{"the lease of hung work is not broken", "poll.go", "> m.o.Grace+2*", "> 100*m.o.Grace+2*"},
	{"the lease is broken at once", "poll.go", "> m.o.Grace+2*m.seen.view.Interval", ">= 0"},
	{"a break has no grace", "loop.go", "lease.Grace(member.BreakGrace(r.o.Session, r.o.Grace))", "lease.Grace(0)"},
	{"a stopping process keeps its own lease", "loop.go", "	if err := r.self.End(ctx); err != nil {\n		r.send(reportFailed(\"\", err, 1))\n	}\n	r.works.Wait()\n", "	r.works.Wait()\n	_ = r.self.End(ctx)\n"},
	{"Run does not wait for the work", "loop.go", "	r.works.Wait()\n", ""},
	{"a process does not announce itself again", "loop.go", "r.self.Show(ctx, owner); err != nil", "error(nil); owner == \"\" && err != nil"},
	{"a failed call of names empties the list", "machine.go", "		m.failures.names++\n", "		m.failures.names++\n		m.names = nil\n"},
	{"the work of a removed name goes on", "poll.go", "			do.end = append(do.end, ending{name, ErrRemoved})", "			_ = name"},
	{"shards that are not taken stay free", "poll.go", "h.passed >= patience+rankBefore", "h.passed < 0+rankBefore"},
	{"an overdue shard is given first", "poll.go", "m.take(s.name, 0,", "m.take(s.name, 1<<62,"},
	{"a shard with work that hangs counts as held", "loop.go", "!h.session.CheckAlive()", "false"},
	{"names that are gone are remembered", "poll.go", "if h.own == nil && now.Sub", "if false && now.Sub"},
	{"a shard that fails is kept", "machine.go", "w.failures >= mostFailures && m.hasOthers(true)", "w.failures < 0"},
	{"a shard that failed is taken again at once", "history.go", "now.Add(min(pause, longest))", "now"},
	{"the context of the work does not end with the lease", "work.go", "err = r.work(ctx, h, tok)", "err = r.work(h.ctx, h, tok)"},
	{"a shard that fails everywhere makes others move", "history.go", "return order > 0 ||", "return true ||"},
	{"a shard that was taken never counts", "history.go", "now.Sub(h.since) >= trial", "false"},
	{"refused names take a part of a share", "history.go", "return now.Sub(h.since) < trial ||", "return true ||"},
	{"a shard that does not count takes no room", "assign.go", "max(0, m.Max-elsewhere[m.ID])", "m.Max"},
	{"a process in which all work fails keeps its share", "quarantine.go", "failed && over:", "failed && over && now.IsZero():"},
	{"every quarantine is short", "quarantine.go", "q.pause *= 2", "q.pause *= 1"},
	{"a quarantine never ends", "quarantine.go", "case well && inside:", "case well && inside && now.IsZero():"},
	{"a process is in quarantine though the others have no room", "quarantine.go", "if tooMany(outside, n) > 0 {", "if false {"},
	{"a process gets a shard whose name it does not know", "knows.go", "m.knows[bucket] == own[bucket]", "m.knows == m.knows"},
	{"a whole share is rounded up", "assign.go", "return remainder[m.ID] == 0 })", "return false })"},
	{"the process of another group is a member", "listing.go", "ok && member.IsOf(m.ID, prefix) && !slices", "ok && !slices"},
	{"a drained process has its share", "poll.go", "		case !o.Drained:\n", "		default:\n"},
	{"work without progress goes on", "work.go", ", ProgressTimeout: r.o.ProgressTimeout})", "})"},
	{"idle shards are not counted", "assign.go", "		n -= min(n, m.Max)\n	}\n	return n\n", "	}\n	return 0 * n\n"},
	{"permits are never free again", "work.go", "func() { <-r.permits }", "func() {}"},
	{"a lease that has ended counts as held", "poll.go", "if h.own != nil && !p.ended[name] {", "if h.own != nil {"},
	{"shards with hidden names take no room", "poll.go", "others = maps.Clone(hidden)", "others = map[string]int{}"},
	{"a process full of shards that do not count has no limit", "assign.go", "m.hasRoom(elsewhere[m.ID])", "m.hasRoom(elsewhere[m.ID] - 1)"},
	{"the next quarantine is short as soon as work goes well", "quarantine.go", "case well && now.Sub(q.until) >= q.pause:", "case well:"},
	{"the loads of one bucket do not count in the next", "knows.go", "			loads[m.to]++\n", ""},
	{"the contexts of the work end with that of Run", "loop.go", "context.WithCancelCause(context.WithoutCancel(ctx))", "context.WithCancelCause(ctx)"},
	{"an acquire that fails keeps its permit", "work.go", "	defer acquired()\n", ""},
	{"a long pause is no progress", "work.go", "step = min(d, most)", "step = d"},
	{"a lost lease of the process is not acquired again", "../internal/member/lease.go", "} else if old.CheckAlive() {", "} else if old.CheckAlive() || old.Token() == \"\" {"},
	{"a break that fails is sent again at each poll", "poll.go", "				h.overdue.since = p.now\n", ""},
	{"names that others do not know yet are taken at once", "poll.go", "(allKnow || h.passed >= nameLag)", "(allKnow || h.passed >= 0)"},
	{"a process with two leases counts twice", "listing.go", "ok && member.IsOf(m.ID, prefix) && !slices.ContainsFunc(l.members, func(o worker) bool { return o.ID == m.ID })", "ok && member.IsOf(m.ID, prefix)"},
	{"a drain by ID has no effect", "listing.go", "name == m.ID || name", "name"},
	{"a drain by owner and ID has no effect", "listing.go", " || who == label(m.Owner, m.ID)", " || who == \"\""},
	{"a drain lease that names no process is not reported", "poll.go", "strays[name] == 2", "strays[name] < 0"},
	{"a drain lease that names no process is reported at once", "poll.go", "strays[name] == 2", "strays[name] == 1"},
	{"a drain lease is reported in each list", "poll.go", "strays[name] == 2", "strays[name] >= 2"},
	{"the lease of another group is a drain lease", "listing.go", "; group == \"\" {", "; group != \"-\" {"},
	{"Run does not wait for names", "loop.go", "	_ = r.naming.Close(context.WithoutCancel(ctx))\n", ""},
	{"the grace counts across grants of a lease", "history.go", "h.overdue.token != token || h.overdue.list < list-1", "h.overdue.list < list-1"},
	{"the smallest remainder is rounded up first", "assign.go", "cmp.Compare(remainder[b.ID], remainder[a.ID])", "cmp.Compare(remainder[a.ID], remainder[b.ID])"},
	{"a free shard stops counting before each process had its turn", "history.go", "h.passed < patience+members", "h.passed < patience"},
	{"a list that succeeds ends no series of failures", "poll.go", "	m.failures.lists = 0\n", ""},
}

// Every planted bug fits the code. With -planted it is also compiled, and must be found:
//
//	go test -run Planted ./shards -planted .
func TestPlanted(t *testing.T) { planted.Run(t, plantedBugs, "-shards.seed", "1") }
