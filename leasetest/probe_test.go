package leasetest

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A constructor that returns nil, or a nil pointer, is named, with the rule that asked for it:
// nothing is dereferenced.
func TestConstructorsThatReturnNil(t *testing.T) {
	reopens := plainStores("")
	reopens.options.Store.Reopen = func(testing.TB, lease.Store) lease.Store { return nil }
	alone := plainStores("")
	alone.options.Store.Another = func(testing.TB, lease.Store) lease.Store { return nil }
	noAuthority := buggySessions("")
	noAuthority.options.Lease.Authority = func(testing.TB) lease.Authority { return nil }
	for _, c := range []struct {
		by    string
		suite *suite
		rule  string
	}{
		{"newStore", &suite{rules: storeRules, newStore: func(testing.TB) lease.Store { return nil }}, "S1/swap-commits"},
		{"newStore", &suite{rules: storeRules, newStore: func(testing.TB) lease.Store { return (*plainStore)(nil) }}, "S1/swap-commits"},
		{"Options.Store.Reopen", reopens, "S3/reopening-keeps-every-state"},
		{"Options.Store.Another", alone, "S8/no-load-is-stale-for-another-client-in-any-state"},
		{"newAuthority", &suite{rules: authorityRules, newAuthority: func(testing.TB) lease.Authority { return nil }}, "A1/refused-is-a-code"},
		{"newLease", &suite{rules: leaseRules, newLease: func(testing.TB, Holder) lease.Lease { return nil }}, "H1/granted-is-held"},
		{"Options.Lease.Authority", noAuthority, "H1/granted-is-held"},
		{"newGuard", &suite{rules: guardRules, newGuard: func(testing.TB) Guard { return nil }}, "G4/equal-tokens-pass"},
		{"newGuard", &suite{rules: guardRules, newGuard: func(testing.TB) Guard { return (*fencing.Guard)(nil) }}, "G4/equal-tokens-pass"},
	} {
		if c.suite.options.Seed == 0 {
			c.suite.options = (&Options{Bubble: true, Seed: 1}).withDefaults()
		}
		found := c.suite.violations(t, c.rule)
		if want := c.by + " of this test returned nil; rule " + c.rule; len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("%s, %s: it says %q", c.by, c.rule, found)
		}
	}
}
