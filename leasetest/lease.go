package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A Holder is what a lease under test is to be made of.
type Holder struct {
	Name      string          // of the lease; holders of one name contend
	Owner     string          // may be empty: then the holder is an owner of its own
	TakeOver  bool            // an earlier incarnation of the same owner is dead
	Duration  time.Duration   // of the lease; it is renewed about every third of it
	Clock     lease.Clock     // the holder's clock; nil: package time
	Authority lease.Authority // that gets every request; nil without CanUseAuthority
}

// TestLease tests a lease: it checks the clauses H of SPEC.md, and the clauses N when session.Run runs a
// function under it, with a subtest for each rule. The function newLease returns a lease for a
// holder, not acquired yet; it is called in the subtest, and its bubble, and should register a
// clean-up on t that leaves nothing running (under a context that is not t.Context(), which is
// done by then). A holder that the implementation refuses fails t: the suite also asks for such.
// Without [Options.Bubble] it is called by several goroutines.
//
// A lease that brings its own authority is tested without CanUseAuthority. Then Holder.Authority is
// nil, and the suite sees only what the methods of the lease return. With [Options.Revoke] and
// [Options.Cut] it can test more.
//
// A handler of the suite that panics, and that the lease does not recover from, ends the
// process, with a text that says so. In a bubble that rule is the last.
func TestLease(t *testing.T, newLease func(t testing.TB, h Holder) lease.Lease, o *Options) {
	must(newLease != nil, "TestLease: newLease must not be nil")
	s := &suite{rules: leaseRules, options: o.withDefaults(), newLease: newLease}
	s.test(t)
}

var leaseRules = slices.Concat(leaseTokenRules, acquireRules, idRules, beliefRules, renewalRules, breakRules, boundRules, lossRules, releaseRules, waitRules, runRules, panicRules)
