package leasetest

import (
	"slices"
	"testing"
	"testing/synctest"
)

// violations holds the suite's implementation to one rule, in a bubble, and returns what the
// rule has to say.
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
