package leasetest

import (
	"testing"

	"github.com/fencedlease/lease"
)

// TestStore holds a store to the clauses S of SPEC.md, a subtest a rule. The function
// newStore returns an empty store, or one on which the names of the subtest were never used;
// it is called in the subtest, and its bubble, and may register a clean-up on t. Without
// [Options.Bubble] it is called by several goroutines.
//
// Of [Options], Reopen and Forget are for stores. A store is expected to be a
// [lease.Watcher], unless it lacks Watching, and to keep to its Limits if it is a
// [lease.Limiter].
func TestStore(t *testing.T, newStore func(t testing.TB) lease.Store, o *Options) {
	s := &suite{rules: storeRules, options: o.withDefaults(), newStore: newStore}
	s.test(t)
}

var storeRules []rule
