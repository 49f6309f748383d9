package leasetest

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A rule is one subtest of a suite.
type rule struct {
	name  string // the name of the rule and of its subtest: the clause of SPEC.md, a slash, and what the rule checks
	says  string // the rule as a sentence
	needs Ability
	check func(*tester)
}

// In some rules, the suite passes a function to the implementation, and this function panics. The map
// panickingRules contains these rules. The suite skips these rules if another rule has failed, because the
// panic can end the process before go test prints the earlier failures.
var panickingRules = map[string]bool{"H16/a-panic-stops-no-other": true, "G3/a-failure-does-not-lower-the-mark": true}

// clause returns the clause of SPEC.md that the rule checks.
func (r rule) clause() string {
	clause, _, _ := strings.Cut(r.name, "/")
	return clause
}

// A suite is a list of rules for one implementation. Exactly one of the four constructors is set.
type suite struct {
	rules   []rule
	options Options
	steps   bool          // the implementation is a function like lease.Step, which gets the time as an argument
	longest time.Duration // the real time that a rule in a bubble may take. Default: a minute

	mu      sync.Mutex
	skipped []string // names of skipped rules, each with the missing abilities
	failed  []string // names of failed rules
	said    []string // the messages of violations

	newStore     func(testing.TB) lease.Store
	newAuthority func(testing.TB) lease.Authority
	newLease     func(testing.TB, Holder) lease.Lease
	newGuard     func(testing.TB) Guard
}

// The method test runs every rule as a subtest. At the end, it logs each rule that was skipped, and the
// missing abilities that this rule needs.
func (s *suite) test(t *testing.T) {
	t.Cleanup(func() {
		if len(s.skipped) > 0 {
			t.Logf("%d of %d rules were skipped:\n%s", len(s.skipped), len(s.rules), strings.Join(s.skipped, "\n"))
		}
	})
	for _, r := range s.rules {
		t.Run(r.name, func(sub *testing.T) {
			defer s.noteFailure(sub, r)
			if !s.options.Bubble && !isVital(r) {
				sub.Parallel()
			}
			// Assume for now that the implementation has all optional methods. The rule will create a value
			// of the implementation, and pass this value to the method checkMade. If the value lacks a method
			// that the rule needs, checkMade skips the rule.
			switch missing := r.needs &^ (s.options.Can | methods); {
			case missing != 0:
				s.skip(sub, r, missing)
			case panickingRules[r.name] && t.Failed():
				sub.Skipf("another rule has failed, and the panic of this one may end the process")
			case s.options.Bubble:
				defer s.startWatchdog(sub, r)()
				s.runInBubble(sub, r)
			default:
				s.checkInRealTime(sub, r)
			}
		})
		if isVital(r) && t.Failed() {
			t.Fatal("the implementation does not work at all, so no other rule is checked")
		}
	}
}

// isVital reports whether the suite ends if the rule r fails, because all other rules would fail as well.
func isVital(r rule) bool { return strings.HasSuffix(r.name, "/it-works-at-all") }

// The type pace limits how fast the rules of a suite start: while many rules are running, the next rule has
// to wait. If hundreds of rules started at the same time, a real server would answer their first requests too
// late.
type pace struct {
	mu      sync.Mutex
	running int
	ended   sync.Cond // signals that a rule has ended; its lock is mu
	next    time.Time // when the next rule may start
}

// rulePace is shared by all suites that run outside a bubble.
var rulePace = newPace()

// Up to eight rules may start without a delay. While eight rules are running, each further rule has to wait.
const fewRules = 8

func newPace() *pace {
	p := new(pace)
	p.ended.L = &p.mu
	return p
}

// The method enter blocks until a rule may start. If fewer than fewRules rules are running, the rule may
// start at once. Otherwise it may start when the time since the start of the previous rule has reached the
// given gap.
func (p *pace) enter(gap time.Duration) {
	p.mu.Lock()
	start := time.Now()
	if p.running++; p.running > fewRules && start.Before(p.next) {
		start = p.next
	}
	p.next = start.Add(gap)
	p.mu.Unlock()
	time.Sleep(time.Until(start))
}

// enterAgain blocks until at most the given number of other rules are running.
func (p *pace) enterAgain(beside int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running > beside {
		p.ended.Wait()
	}
	p.running++
}

func (p *pace) leave() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	p.ended.Broadcast()
}

func (s *suite) skip(t testing.TB, r rule, missing Ability) {
	t.Helper()
	s.mu.Lock()
	s.skipped = append(s.skipped, fmt.Sprintf("%s (needs %v)", r.name, missing))
	s.mu.Unlock()
	for a := missing &^ exactTime; a != 0 && s.options.Lacks != nil; a &= a - 1 { // a Slack that is not zero already says that times are not exact
		if name := (a & -a).String(); !slices.Contains(s.options.Lacks, name) {
			t.Errorf("the rule needs %s, which is missing, and Options.Lacks does not contain it", name)
		}
	}
	t.Skipf("needs %v: %s", missing, r.says)
}

func (s *suite) noteFailure(t testing.TB, r rule) {
	if t.Failed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = append(s.failed, r.name)
	}
}

// failures returns the names and messages of the rules that have failed so far. If a panic ends the process,
// go test does not print the messages of failed rules. The suite therefore adds these messages to the text of
// the panic.
func (s *suite) failures() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) == 0 {
		return ""
	}
	return "\nRules that failed before: " + strings.Join(s.failed, ", ") + "\n" + strings.Join(s.said, "\n\n")
}

func (s *suite) check(t testing.TB, r rule) {
	p := s.tester(t, r)
	p.guarded(func() { r.check(p) })()
}

// replay returns the command that runs the named subtest again with the same seed.
func (s *suite) replay(name string) string {
	return fmt.Sprintf("%s=%d %s -run '%s'", seedVariable, s.options.Seed, goTest(), pattern(name))
}

// goTest returns the go test command for this binary, including its package path if the path is known.
func goTest() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return "go test " + path
		}
	}
	return "go test"
}

// The function pattern returns a regular expression that selects the named test. This expression is passed to
// go test with the flag -run. It contains no single quote, so that it can be quoted in a shell command.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}
