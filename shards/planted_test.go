package shards

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/fencedlease/lease/internal/check/planted"
)

var plantedNames = flag.String("shards.planted", "", "plant the bugs whose names match")

// Each bug replaces a piece of code that occurs once in its file. At least one test must find it.
var plantedBugs = []struct{ name, file, old, new string }{
	{"the share is always rounded up", "assign.go", "range rest[:min(left, len(rest))]", "range rest"},
	{"the rich do not keep the rest", "assign.go", "cmp.Compare(rich(a), rich(b))", "cmp.Compare(rich(b), rich(a))"},
	{"weights do not count", "assign.go", "uint64(n), uint64(m.weight))", "uint64(n), uint64(sum/len(rest)))"},
	{"a full process gets more", "assign.go", "if m.max == 0 || lessProduct", "if m.max >= 0 || lessProduct"},
	{"the oldest shards are given", "assign.go", "cmp.Compare(b.order, a.order)", "cmp.Compare(a.order, b.order)"},
	{"running work moves before free shards", "assign.go", "cmp.Compare(a.holder, b.holder), cmp.Compare(b.order", "cmp.Compare(b.holder, a.holder), cmp.Compare(b.order"},
	{"a receiver gets every shard", "assign.go", "lacks[to]--", "lacks[to] += 0"},
	{"the first look acquires", "group.go", "		case first:\n", "		case first && m.from != \"\":\n"},
	{"one shard is taken for each look", "group.go", "		case m.from == \"\" && m.to == r.id:\n", "		case m.from == \"\" && m.to == r.id && r.order > 0 && len(due) > 0:\n		case m.from == \"\" && m.to == r.id:\n			due[surplus{}] = now\n"},
	{"all processes take a free shard", "group.go", "m.from == \"\" && m.to == r.id:", "m.from == \"\":"},
	{"the lease of hung work is not broken", "group.go", "now.Sub(since) > r.o.Grace", "now.Sub(since) > 100*r.o.Grace"},
	{"the lease is broken at once", "group.go", "now.Sub(since) > r.o.Grace+2*r.interval", "now.Sub(since) >= 0"},
	{"a break has no grace", "group.go", "lease.Grace(member.BreakGrace(r.o.Session, r.o.Grace))", "lease.Grace(0)"},
	{"a stopping process keeps its own lease", "group.go", "	if err := r.self.End(ctx); err != nil {\n		r.reportFailed(\"\", err, 1)\n	}\n	r.works.Wait()\n", "	r.works.Wait()\n	_ = r.self.End(ctx)\n"},
	{"Run does not wait for the work", "group.go", "	r.works.Wait()\n", ""},
	{"a process does not announce itself again", "group.go", "r.self.Show(ctx, r.announcement())", "error(nil)"},
	{"a failed call of names empties the list", "group.go", "	if r.asked != nil {\n", "	if r.asked != nil {\n		r.names = nil\n"},
	{"the work of a removed name goes on", "group.go", "			h.end(ErrRemoved)", "			_ = h"},
	{"shards that are not taken stay free", "group.go", "n >= patience &&", "n < 0 &&"},
	{"an overdue shard is given first", "group.go", "r.take(ctx, s.name, 0)", "r.take(ctx, s.name, 1<<62)"},
	{"a shard with work that hangs counts as held", "work.go", "return h.session == nil || h.session.CheckAlive()", "return true"},
	{"names that are gone are remembered", "group.go", "return !names[name] && r.clock", "return false && r.clock"},
	{"a shard that fails is kept", "work.go", "failures >= mostFailures && r.hasOthers(true)", "failures < 0"},
	{"a shard that failed is taken again at once", "work.go", "a.until = r.clock.Now().Add(min(pause, longest))", "a.until = r.clock.Now()"},
	{"the context of the work does not end with the lease", "work.go", "err := r.work(ctx, h, tok)", "err := r.work(h.ctx, h, tok)"},
	{"a shard that fails everywhere makes others move", "count.go", "tried := s.holder != \"\"", "tried := false"},
	{"a shard that was taken never counts", "count.go", "s.order == 0 && !long", "s.order == 0"},
	{"refused names take a part of a share", "count.go", "refused := s.holder == \"\"", "refused := false"},
	{"a shard that does not count takes no room", "count.go", "m.max-others[m.id])", "m.max)"},
	{"a process in which all work fails does not rest", "rest.go", "failed && over:", "failed && over && now.IsZero():"},
	{"every rest is short", "rest.go", "r.rest.pause *= 2", "r.rest.pause *= 1"},
	{"a process rests for ever", "rest.go", "case well && rested:", "case well && rested && now.IsZero():"},
	{"a process rests though the others have no room", "rest.go", "if room < n {", "if false {"},
	{"a process gets a shard whose name it does not know", "knows.go", "knows[m.id][bucket] == own[bucket]", "knows[m.id] == knows[m.id]"},
	{"a whole share is rounded up", "assign.go", "return remainder[m.id] == 0 })", "return false })"},
	{"the process of another group is a member", "view.go", "ok && member.IsOf(m.ID, prefix) && !slices", "ok && !slices"},
	{"a drained process has its share", "group.go", "		case !m.Drained:\n", "		default:\n"},
	{"work without progress goes on", "work.go", ", ProgressTimeout: r.o.ProgressTimeout})", "})"},
	{"idle shards are not counted", "group.go", "	return max(0, n)\n", "	return 0 * n\n"},
	{"permits are never free again", "work.go", "			<-r.permits\n", ""},
}

// Every planted bug fits the code. With -shards.planted it is also compiled, and must be found:
//
//	go test -run Planted ./shards -shards.planted .
func TestPlanted(t *testing.T) {
	var all, chosen []planted.Bug
	for _, b := range plantedBugs {
		bug := planted.Bug{Name: b.name, File: b.file, Old: b.old, New: b.new}
		if all = append(all, bug); *plantedNames != "" && regexp.MustCompile(*plantedNames).MatchString(b.name) {
			chosen = append(chosen, bug)
		}
	}
	for _, err := range planted.Check(all) {
		t.Error(err)
	}
	builds, err := planted.Builds(t.TempDir(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range chosen {
		t.Run(b.Name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), builds[i].Binary, "-test.timeout", "60s", "-rapid.nofailfile", "-test.skip", "Planted|Compare|Curve", "-shards.seed", "1")
			cmd.Env = append(os.Environ(), builds[i].Env...)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("not found")
			}
			t.Log(regexp.MustCompile(`--- FAIL: \w+|panic: test timed out`).FindString(string(out)))
		})
	}
}
