package leasetest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A failure after a delay does not count, and if every run fails after a delay, the rule is skipped. Each case
// is an authority whose first runs are late, or that has a bug.
func TestDelaysExcuseFailures(t *testing.T) {
	const slack = 100 * time.Millisecond
	i := slices.IndexFunc(authorityRules, func(r rule) bool { return r.name == "A5/min-remaining-is-certain" })
	stall := leasefault.DelayAnswer(time.Minute)
	for what, c := range map[string]struct {
		stalls int // the number of runs that stall
		bug    bool
		own    bool // the test sleeps itself
		runs   int
		result string
	}{
		"no delay":                      {0, false, false, 1, "passed"},
		"a delay in the first run":      {1, false, false, 2, "passed"},
		"delays in all but the last":    {7, false, false, 8, "passed"},
		"delays in every run":           {9, false, false, 8, "skipped"},
		"a bug":                         {0, true, false, 1, "failed"},
		"a bug, and a delay":            {1, true, false, 2, "failed"},
		"a delay, and a sleep function": {1, false, true, 1, "failed"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				o := &Options{Unit: slack, Slack: slack}
				if c.own {
					o.Sleep = time.Sleep
				}
				s := &suite{rules: authorityRules, options: o.withDefaults(), newAuthority: func(t testing.TB) lease.Authority {
					a := lease.NewAuthority(memory.New(nil))
					if runs++; runs <= c.stalls {
						a = leasefault.Script(a, leasefault.Nth(1, lease.ActionAcquire, stall))
					}
					if c.bug {
						a = leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining *= 3 })
					}
					return a
				}}
				m := &recorder{TB: t}
				m.run(func() { s.checkInRealTime(m, authorityRules[i]) })
				result := "passed"
				if m.Failed() {
					result = "failed"
				} else if m.skipped {
					result = "skipped"
				}
				if runs != c.runs || result != c.result {
					t.Errorf("%d runs, %s, want %d, %s\n%s", runs, result, c.runs, c.result, strings.Join(m.messages, "\n"))
				}
				if listed := strings.Join(s.skipped, "\n"); strings.Contains(listed, "was later than") != (c.result == "skipped") {
					t.Errorf("the list of skipped rules is %q", listed)
				}
			})
		})
	}
}

// A rule with names of its own may run again at the same store, because its first run was late.
func TestNamesRunAgain(t *testing.T) {
	i := slices.IndexFunc(nameRules, func(r rule) bool { return r.name == "S6/different-names-are-different-leases" })
	m := memory.New(nil)
	s := &suite{rules: nameRules, options: new(Options).withDefaults(), newStore: func(testing.TB) lease.Store { return m }}
	for range 2 {
		s.checkInRealTime(t, nameRules[i])
	}
}
