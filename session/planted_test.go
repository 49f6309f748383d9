package session_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/planted"
)

// plants are bugs outside the machine, each with the test that must find it.
var plants = []struct{ name, file, old, new, test string }{
	{"progress counts for the innermost Run only", "progress.go", "p != nil; p = p.outer", "p != nil; p = nil", "TestProgressOfRuns"},
	{"a late Progress gives more than one limit of time", "progress.go", "left := time.Duration(p.last.Load()) + limit - p.elapsed()", "left := 2*time.Duration(p.last.Load()) + limit - p.elapsed()", "TestProgressTimeout"},
	{"TryRun has no limit for progress", "run.go", "_, err = r.term(ctx, tok, r.watched(f))\n\t\treturn true", "_, err = r.term(ctx, tok, f)\n\t\treturn true", "TestProgressTimeoutOfWorkThatStops"},
	{"Close releases a lease held until MinHold", "../internal/holder/machine.go", "c != nil; c = m.ledger.newest(heldUntil) {", "false; {", "TestMinHoldEnds"},
	{"an Acquire releases the lease held until MinHold", "../internal/holder/command.go", "case c.phase == heldUntil:\n\t\treturn notGranted(res)\n", "", "TestMinHold"},
	{"Wait does not wait for a lease held until MinHold", "../internal/holder/machine.go", "return c.phase != deferred && c.phase != heldUntil", "return c.phase != deferred", "TestMinHoldAgain"},
	{"the shortest hold forgets the drift of the clocks", "subject.go", "granted.Add(s.machineOptions.MaxElsewhere(hold))", "granted.Add(hold)", "TestMinHoldWithDrift"},
	{"RunAll acquires in the order of the arguments", "runall.go", "slices.SortStableFunc(rs, func(a, b member) int { return cmp.Compare(a.lease.Name(), b.lease.Name()) })", "_ = cmp.Compare[int]", "TestRunAll"},
	{"RunAll mixes up the tokens", "runall.go", "a.toks[m.at] = tok", "a.toks[i] = tok", "TestRunAll"},
	{"RunAll contends again after a take-over", "runall.go", "return !a.failed, a.takenOver, err", "return !a.failed, false, err", "TestRunAllAgain"},
	{"RunAll releases one lease after the other", "runall.go", "a.releases.Go(func() { a.errs[i] = release() })", "a.errs[i] = release()", "TestRunAll"},
	{"RunAll forgets that a release has failed", "runall.go", "err = holder.Join(err, failed)", "_ = failed", "TestRunAll"},
	{"RunAll asks Again about a lease that it cannot acquire", "runall.go", "a.failed = true", "a.failed = false", "TestRunAllOrNone"},
	{"Follow sees only what a watch signals", "follow.go", "left := f.Interval", "left := lease.Infinite", "TestFollow"},
	{"Follow hides errors", "follow.go", "(changed || !known) && !yield", "changed && !yield", "TestFollow"},
	{"Follow reads at every signal", "follow.go", "if !changed && !passed {", "if false && !passed {", "TestFollowWithBadWatches"},
	{"hooks are called before the contexts end", "actions.go", "p.do(s.contexts.End(out.Ended))\n", "defer func(end func()) { p.hooks = append(p.hooks, end) }(s.contexts.End(out.Ended))\n", "TestEnds"},
	{"CheckAlive is true in a hook", "actions.go", "\ts.belief.Store(s.machine.Belief())\n\ts.last", "\tif b := s.machine.Belief(); b != nil {\n\t\ts.belief.Store(b)\n\t} else {\n\t\tdefer func() { p.hooks = append(p.hooks, func() { s.belief.Store(nil) }) }()\n\t}\n\ts.last", "TestEnds"},
	{"requests are no tasks", "actions.go", "\t\ts.tasks.Begin()\n", "\t\ts.tasks.Begin()\n\t\ts.tasks.End()\n", "TestCloseWaitsForTheTimer"},
	{"the watch of an earlier term goes on", "actions.go", "p.do(s.watching)\n", "", "TestEnds"},
}

// TestPlantedBugs builds the tests with each bug in turn, which must fail the test that is named. An ordinary
// run only checks that each bug can still be planted. To plant all, run
//
//	go test -run TestPlantedBugs ./session -planted .
func TestPlantedBugs(t *testing.T) {
	var all, bugs []planted.Bug
	var tests []string
	for _, p := range plants {
		b := planted.Bug{Name: p.name, File: p.file, Old: p.old, New: p.new}
		if all = append(all, b); planted.Chosen(p.name) {
			bugs, tests = append(bugs, b), append(tests, p.test)
		}
	}
	for _, err := range planted.Check(all) {
		t.Error(err)
	}
	builds, err := planted.Builds(t.TempDir(), bugs)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bugs {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, builds[i].Binary, "-test.run=^"+tests[i]+"$")
		cmd.Env = append(os.Environ(), builds[i].Env...)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "--- FAIL: "+tests[i]) && ctx.Err() == nil {
			t.Errorf("%s: not found by %s", b.Name, tests[i])
		}
		cancel()
	}
	t.Logf("%d of %d bugs were planted", len(bugs), len(plants))
}
