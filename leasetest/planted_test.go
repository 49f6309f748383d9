package leasetest

import (
	"slices"
	"strings"
	"testing"
)

// A namedBug is a bug, a suite with it, and the rules that must find it, separated by blanks.
type namedBug struct {
	bug   string
	suite func() *suite
	rules string
}

// tables has all planted bugs but exchangeBugs, with the suite over an implementation that has a bug.
var tables = []struct {
	kind  string
	suite func(bug string) *suite
	bugs  []plantedBug
}{
	{"matrix", cellNamed, matrixBugs},
	{"store", plainStores, storeBugs},
	{"authority", plainAuthorities, authorityBugs},
	{"machine", buggyMachines, machineBugs},
	{"guard", plainGuards, guardBugs},
	{"session", buggySessions, sessionBugs},
}

// cellNamed returns the suite with the bug of that cell of the matrix.
func cellNamed(name string) *suite {
	all := cellBugs()
	i := slices.IndexFunc(all, func(b cellBug) bool { return b.name == name })
	if i < 0 {
		panic("there is no bug " + name)
	}
	return all[i].suite()
}

// allPlanted returns all planted bugs.
func allPlanted() (all []namedBug) {
	for _, c := range tables {
		for _, b := range c.bugs {
			all = append(all, namedBug{c.kind + "/" + b.bug, func() *suite { return c.suite(b.bug) }, b.rules})
		}
	}
	for _, b := range exchangeBugs {
		all = append(all, namedBug{"session/" + b.bug, func() *suite { return buggySessions(b.bug) }, b.rules})
	}
	return all
}

// Each rule finds the bugs that are planted for it. Implementations without a bug pass: see TestPlainStore.
func TestCalibration(t *testing.T) {
	for _, b := range allPlanted() {
		for _, name := range strings.Fields(b.rules) {
			t.Run(b.bug+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := b.suite()
				r := rulesNamed(t, s.rules, name)[0]
				if missing := r.needs &^ (s.options.Can | methods); missing != 0 {
					t.Fatalf("the rule is skipped: it needs %v", missing)
				}
				found := strings.Join(s.violated(t, r), "\n")
				if !strings.Contains(found, "SPEC "+r.clause()+" is violated") || !strings.Contains(found, "replay:") {
					t.Errorf("the rule does not find the bug, but says %q", found)
				}
			})
		}
	}
}

// Every rule of the suites that is no vector has a bug.
func TestEveryRuleIsCalibrated(t *testing.T) {
	has := map[string]bool{}
	for _, b := range allPlanted() {
		s := b.suite()
		for _, name := range strings.Fields(b.rules) {
			has[s.kind()+name] = true
		}
	}
	for kind, rules := range map[string][]rule{"store": storeRules, "authority": authorityRules, "lease": leaseRules, "guard": guardRules, "step": stepRules} {
		for _, r := range rules {
			// A rule of machines may also find its bug in an authority. TestEndsOfTheProcess has the bugs
			// of the rules that panic.
			if !has[kind+r.name] && !(kind == "step" && has["authority"+r.name]) && !panickingRules[r.name] {
				t.Errorf("%s: no bug is there for %s", kind, r.name)
			}
		}
	}
}

// kind says what a suite tests.
func (s *suite) kind() string {
	switch {
	case s.newStore != nil:
		return "store"
	case s.newLease != nil:
		return "lease"
	case s.newGuard != nil:
		return "guard"
	case s.steps:
		return "step"
	}
	return "authority"
}
