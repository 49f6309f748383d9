package leasetest

import (
	"testing"

	"github.com/fencedlease/lease"
)

// TestAuthority holds an authority to the clauses M and A of SPEC.md: a subtest a rule, and
// a subtest for every scenario of [Vectors], under its name. The function newAuthority
// returns an authority on which the names of the subtest were never used; it is called in
// the subtest, and its bubble, and may register a clean-up on t. Without [Options.Bubble] it
// is called by several goroutines.
func TestAuthority(t *testing.T, newAuthority func(t testing.TB) lease.Authority, o *Options) {
	s := &suite{rules: authorityRules, options: o.withDefaults(), newAuthority: newAuthority}
	s.test(t)
}

var authorityRules []rule
