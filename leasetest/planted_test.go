package leasetest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// The suites are held to broken implementations: each is found by the rule that is named
// for it, and without its bug it passes that rule.
func TestCalibration(t *testing.T) {
	for _, c := range []struct {
		kind  string
		suite func(bug string) *suite
		bugs  []plantedBug
	}{
		{"store", plainStores, storeBugs},
		{"authority", plainAuthorities, authorityBugs},
		{"lease", plainLeases, leaseBugs},
		{"guard", plainGuards, guardBugs},
		{"session", buggySessions, sessionBugs},
		{"machine", buggyMachines, machineBugs},
	} {
		for _, m := range c.bugs {
			t.Run(c.kind+"/"+m.bug+"/"+m.rule, func(t *testing.T) {
				found := c.suite(m.bug).violations(t, m.rule)
				if len(found) == 0 {
					t.Fatalf("%s lives: a %s passes whose bug is: %s", m.rule, c.kind, m.bug)
				}
				clause, _, _ := strings.Cut(m.rule, "/")
				if !strings.Contains(found[0], "SPEC "+clause+" is violated") || !strings.Contains(found[0], "replay:") {
					t.Errorf("the failure says:\n%s", found[0])
				}
				if sound := c.suite("").violations(t, m.rule); len(sound) != 0 {
					t.Errorf("without the bug it fails too:\n%s", sound[0])
				}
			})
		}
	}
}

// Every rule of the suites that no vector states finds a bug.
func TestEveryRuleIsCalibrated(t *testing.T) {
	for kind, c := range map[string]struct { // rules of two kinds may have one name
		rules []rule
		bugs  []plantedBug
	}{
		"store":     {storeRules, storeBugs},
		"authority": {authorityRules, authorityBugs},
		"lease":     {leaseRules, slices.Concat(leaseBugs, sessionBugs)},
		"guard":     {guardRules, guardBugs},
		"step":      {stepRules, machineBugs},
	} {
		for _, r := range c.rules {
			named := func(b namedBug) bool { return b.rule == r.name }
			if !slices.ContainsFunc(c.bugs, func(m plantedBug) bool { return m.rule == r.name }) && !slices.ContainsFunc(missedBugs, named) && !slices.ContainsFunc(ruleBugs, named) {
				t.Errorf("%s: no bug is there for %s", kind, r.name)
			}
		}
	}
}

// violations runs one rule of the suite in a bubble, and returns the messages of its failures.
func (s *suite) violations(t *testing.T, name string) (messages []string) {
	i := slices.IndexFunc(s.rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("there is no rule %s", name)
	}
	if missing := s.rules[i].needs &^ (s.options.Can | methods); missing != 0 {
		t.Fatalf("rule %s is skipped: it needs %v", name, missing)
	}
	defer s.startWatchdog(t, s.rules[i])()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		r.run(func() { s.check(r, s.rules[i]) })
		if r.skipped {
			t.Fatalf("rule %s skipped itself", name)
		}
		messages = r.messages
	})
	return messages
}
