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
	name  string // the name of the subtest, which is the clause of SPEC.md and the name of the rule
	says  string // the rule as a sentence
	needs Ability
	check func(*probe)
}

// panicking contains the rules in which a function of the suite panics. If another rule has failed,
// these rules are skipped, because a panic may end the process before the messages of earlier
// failures are printed.
var panicking = map[string]bool{"H16/a-panic-stops-no-other": true, "G3/a-failure-does-not-lower-the-mark": true}

// clause returns the clause of SPEC.md that the rule checks.
func (r rule) clause() string {
	clause, _, _ := strings.Cut(r.name, "/")
	return clause
}

// A suite is a list of rules and the implementation under test. Exactly one of its constructors is
// set.
type suite struct {
	rules   []rule
	options Options
	steps   bool          // the time is an argument of the implementation
	longest time.Duration // the real time that a rule in a bubble may take; 0 for a minute

	mu      sync.Mutex
	skipped []string // names of skipped rules, with the missing abilities

	newStore     func(testing.TB) lease.Store
	newAuthority func(testing.TB) lease.Authority
	newLease     func(testing.TB, Holder) lease.Lease
	newGuard     func(testing.TB) Guard
}

// test runs every rule as a subtest, and logs a list of the skipped rules.
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
				defer s.startWatchdog(sub, r)()
				s.runInBubble(sub, r)
			default:
				rulePace.enter(s.options.Unit / 8)
				defer rulePace.leave()
				s.check(sub, r)
			}
		})
	}
}

// A pace delays the start of a rule while many other rules run. If hundreds of rules started at
// once, a real engine would answer their first requests later than the rules expect.
type pace struct {
	mu      sync.Mutex
	running int
	next    time.Time // when the next rule may start
}

// rulePace is the pace of all suites that run outside a bubble.
var rulePace pace

// enter blocks until a rule may start. While more than eight rules run, they start gap apart.
func (p *pace) enter(gap time.Duration) {
	p.mu.Lock()
	start := time.Now()
	if p.running++; p.running > 8 && start.Before(p.next) {
		start = p.next
	}
	p.next = start.Add(gap)
	p.mu.Unlock()
	time.Sleep(time.Until(start))
}

func (p *pace) leave() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
}

// skip skips a rule, and adds it to the list of skipped rules.
func (s *suite) skip(t testing.TB, r rule, missing Ability) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, fmt.Sprintf("%s (needs %v)", r.name, missing))
	s.mu.Unlock()
	t.Skipf("needs %v: %s", missing, r.says)
}

// check runs one rule.
func (s *suite) check(t testing.TB, r rule) { r.check(s.probe(t, r)) }

// replay returns the command that runs the named subtest again with the same seed.
func (s *suite) replay(name string) string {
	return fmt.Sprintf("%s=%d %s -run '%s'", seedVariable, s.options.Seed, goTest(), pattern(name))
}

// goTest returns the command that runs the tests of this test binary. The command contains the
// package path if the build information has it.
func goTest() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return "go test " + path
		}
	}
	return "go test"
}

// pattern returns the regular expression that selects the named test in go test. It can be put in
// single quotes in a shell.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}
