package leasetest

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A rule is one subtest of a suite.
type rule struct {
	name  string // the clause of SPEC.md and the rule: how the subtest is called
	says  string // the rule in a sentence
	needs Ability
	check func(*probe)
}

// panicking are the rules in which a function of the suite panics. If nothing recovers from it, the process
// ends, and every failure before it is lost. So they are skipped once another rule has failed.
var panicking = map[string]bool{"H16/a-panic-stops-no-other": true, "G3/a-failure-does-not-lower-the-mark": true}

// clause returns the clause of SPEC.md that the rule is of.
func (r rule) clause() string {
	clause, _, _ := strings.Cut(r.name, "/")
	return clause
}

// A suite is a list of rules and the implementation that is tested: one of the constructors is set.
type suite struct {
	rules   []rule
	options Options
	steps   bool          // time passes only as the implementation is told
	longest time.Duration // that a rule in a bubble may take, in real time; 0: a minute

	mu      sync.Mutex
	skipped []string // names of rules, each with what it needs

	newStore     func(testing.TB) lease.Store
	newAuthority func(testing.TB) lease.Authority
	newLease     func(testing.TB, Holder) lease.Lease
	newGuard     func(testing.TB) Guard
}

// test runs every rule as a subtest, and lists those that were skipped.
func (s *suite) test(t *testing.T) {
	t.Cleanup(func() {
		if len(s.skipped) > 0 {
			t.Logf("%d of %d rules were skipped:\n%s", len(s.skipped), len(s.rules), strings.Join(s.skipped, "\n"))
		}
	})
	for _, r := range s.rules {
		t.Run(r.name, func(sub *testing.T) {
			if !s.options.Bubble {
				sub.Parallel()
			}
			switch missing := r.needs &^ (s.options.Can | methods); {
			case missing != 0:
				s.skip(sub, r, missing)
			case panicking[r.name] && t.Failed():
				sub.Skipf("another rule has failed, and the panic of this one may end the process")
			case s.options.Bubble:
				defer s.watch(sub, r)()
				s.bubble(sub, r)
			default:
				rulePace.wait(s.options.Unit / 5)
				s.check(sub, r)
			}
		})
	}
}

// A pace keeps the starts of rules apart. If hundreds of rules started at once, a real engine would
// answer their first requests later than the rules expect.
type pace struct {
	mu   sync.Mutex
	next time.Time // when the next rule may start
}

// rulePace is the pace of all suites that run outside a bubble.
var rulePace pace

// wait blocks until a rule may start. The next rule may start gap later.
func (p *pace) wait(gap time.Duration) {
	p.mu.Lock()
	start := p.next
	if now := time.Now(); start.Before(now) {
		start = now
	}
	p.next = start.Add(gap)
	p.mu.Unlock()
	time.Sleep(time.Until(start))
}

// skip skips a rule, and keeps its name for the list at the end.
func (s *suite) skip(t testing.TB, r rule, missing Ability) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, fmt.Sprintf("%s (needs %v)", r.name, missing))
	s.mu.Unlock()
	t.Skipf("needs %v: %s", missing, r.says)
}

// check tests one rule.
func (s *suite) check(t testing.TB, r rule) { r.check(s.probe(t, r)) }

// replay is the command that runs the subtest of that name again, with the same seed.
func (s *suite) replay(name string) string {
	return fmt.Sprintf("%s=%d %s -run '%s'", seedVariable, s.options.Seed, goTest(), pattern(name))
}

// goTest is the command that runs the tests of this test binary, with their package if the
// binary knows it.
func goTest() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return "go test " + path
		}
	}
	return "go test"
}

// pattern is what chooses the test of that name for go test, between the quotes of a shell.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}
