package session_test

import (
	"testing"

	"github.com/fencedlease/lease/internal/check/planted"
)

// Each bug outside the machine replaces a piece of code that occurs once in its file. At least one test must find it.
var plantedBugs = [][4]string{
	{"progress counts for the innermost Run only", "progress.go", "p != nil; p = p.outer", "p != nil; p = nil"},
	{"a late Progress gives more than one limit of time", "progress.go", "left := time.Duration(p.last.Load()) + limit - p.elapsed()", "left := 2*time.Duration(p.last.Load()) + limit - p.elapsed()"},
	{"permanent errors are tried forever", "../internal/retry/retry.go", ">= 30*time.Second", "< 0"},
	{"a temporary error does not end a series of permanent ones", "../internal/retry/retry.go", "		s.permanent = time.Time{}\n", ""},
	{"TryRun has no limit for progress", "run.go", "_, err = r.term(ctx, tok, r.watched(f))\n\t\treturn true", "_, err = r.term(ctx, tok, f)\n\t\treturn true"},
	{"Close releases a lease held until MinHold", "../internal/holder/machine.go", "c != nil; c = m.ledger.newest(heldUntil) {", "false; {"},
	{"an Acquire releases the lease held until MinHold", "../internal/holder/command.go", "case c.phase == heldUntil:\n\t\treturn notGranted(res)\n", ""},
	{"Wait does not wait for a lease held until MinHold", "../internal/holder/machine.go", "return c.phase != deferred && c.phase != heldUntil", "return c.phase != deferred"},
	{"the shortest hold forgets the drift of the clocks", "subject.go", "granted.Add(s.machineOptions.MaxElsewhere(hold))", "granted.Add(hold)"},
	{"RunAll acquires in the order of the arguments", "runall.go", "slices.SortStableFunc(rs, func(a, b member) int { return cmp.Compare(a.lease.Name(), b.lease.Name()) })", "_ = cmp.Compare[int]"},
	{"RunAll mixes up the tokens", "runall.go", "a.toks[m.at] = tok", "a.toks[i] = tok"},
	{"RunAll contends again after a take-over", "runall.go", "return !a.failed, a.takenOver, err", "return !a.failed, false, err"},
	{"RunAll releases one lease after the other", "runall.go", "a.releases.Go(func() { a.errs[i] = release() })", "a.errs[i] = release()"},
	{"RunAll forgets that a release has failed", "runall.go", "err = holder.Join(err, failed)", "_ = failed"},
	{"RunAll asks Again about a lease that it cannot acquire", "runall.go", "a.failed = true", "a.failed = false"},
	{"Follow sees only what a watch signals", "follow.go", "left := f.Interval", "left := lease.Infinite"},
	{"Follow hides errors", "follow.go", "(changed || !known) && !yield", "changed && !yield"},
	{"Follow reads at every signal", "follow.go", "if !changed && !passed {", "if false && !passed {"},
	{"hooks are called before the contexts end", "actions.go", "p.do(s.contexts.End(out.Ended))\n", "defer func(end func()) { p.hooks = append(p.hooks, end) }(s.contexts.End(out.Ended))\n"},
	{"CheckAlive is true in a hook", "actions.go", "\ts.belief.Store(s.machine.Belief())\n\ts.last", "\tif b := s.machine.Belief(); b != nil {\n\t\ts.belief.Store(b)\n\t} else {\n\t\tdefer func() { p.hooks = append(p.hooks, func() { s.belief.Store(nil) }) }()\n\t}\n\ts.last"},
	{"requests are no tasks", "actions.go", "\t\ts.tasks.Begin()\n", "\t\ts.tasks.Begin()\n\t\ts.tasks.End()\n"},
	{"the watch of an earlier term goes on", "actions.go", "p.do(s.watching)\n", ""},
}

// Every planted bug fits the code. With -planted it is also compiled, and must be found:
//
//	go test -run Planted ./session -planted .
func TestPlanted(t *testing.T) { planted.Run(t, plantedBugs) }
