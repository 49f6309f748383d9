package leasetest

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A failure shows what decided: what was sure, and that the suite changed it; the times that a
// machine was told.
func TestHistoriesShowWhatDecides(t *testing.T) {
	lying := stepSuite(func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
		if req.Action == lease.ActionRead && now.Year() < 1 {
			return r, nil
		}
		return lease.Step(r, req, now)
	})
	lying.options.Seed = 1
	for _, c := range []struct {
		suite *suite
		rule  string
		says  []string
	}{
		{cellNamed("holder/acquire/believes twice what is certain")(), "H9/counts-what-is-certain", []string{
			"== the suite changes the answer to acquire", "min=6s max=12s\n", "a <- acquire"}},
		{lying, "M14/sums-saturate", []string{
			"9999-12-31 23:59:59.999999999Z  acquire proposed=", "0000-12-31 23:59:59.999999999Z  read of leased"}},
	} {
		found := strings.Join(c.suite.violations(t, c.rule), "\n")
		for _, text := range c.says {
			if !strings.Contains(found, text) {
				t.Errorf("%s: it does not say %q, but\n%s", c.rule, text, found)
			}
		}
	}
}

// The message of a later violation contains the history since the previous message, and repeats no
// line.
func TestHistoriesGoOn(t *testing.T) {
	r := &recorder{TB: t}
	r.run(func() {
		s := plainStores("")
		p := s.probe(r, s.rules[0])
		p.history.printf("first line")
		p.Errorf("one")
		p.history.printf("second line")
		p.Errorf("two")
		p.Errorf("three")
	})
	for i, c := range []struct{ has, lacks string }{
		{"history:\n          0s  first line\n", "second line"},
		{"1 lines earlier\n", "first line"},
		{"nothing was asked for", "line"},
	} {
		if said := r.messages[i]; !strings.Contains(said, c.has) || strings.Contains(strings.SplitAfter(said, "history")[1], c.lacks) {
			t.Errorf("violation %d does not say %q, or says %q:\n%s", i, c.has, c.lacks, said)
		}
	}
}
