package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A Holder contains the arguments for the constructor of a lease under test.
type Holder struct {
	Name      string          // the name of the lease; holders with the same name contend
	Owner     string          // the owner; if empty, the holder is different from all other owners
	TakeOver  bool            // the holder may take over a lease of the same owner
	Duration  time.Duration   // the duration of the lease; renewals are expected about every third of it
	Clock     lease.Clock     // the clock of the holder; nil for package time
	Authority lease.Authority // the authority for all requests; nil without CanUseAuthority
}

// TestLease tests a lease. It checks the clauses H of SPEC.md, with one subtest for each rule. It
// also checks the clauses N, by calling session.Run with the lease.
//
// Each subtest calls newLease to get a lease for the holder h. The lease must not be acquired yet.
// The function newLease runs inside the bubble of the subtest, if there is one. The function
// newLease should register a cleanup function on t that stops all goroutines of the lease. The
// cleanup function must not use t.Context(), because t.Context() is canceled before cleanup
// functions run.
//
// The suite also passes invalid holders to newLease. If the implementation rejects a holder,
// newLease must report the error of the implementation with t.Fatal. Without [Options.Bubble] the
// function newLease must be safe for concurrent use by multiple goroutines.
//
// If a lease uses an authority of its own, [Options.Can] must not contain CanUseAuthority.
// Holder.Authority is then nil, and the suite can only call the methods of the lease. If
// [Options.Revoke] and [Options.Cut] are set, the suite can test more of such a lease.
//
// One rule registers a handler that panics. If the lease does not recover from that panic, the
// process ends, and its last message names the rule. In a bubble this rule is the last one.
func TestLease(t *testing.T, newLease func(t testing.TB, h Holder) lease.Lease, o *Options) {
	must(newLease != nil, "TestLease: newLease must not be nil")
	s := &suite{rules: leaseRules, options: o.withDefaults(), newLease: newLease}
	s.test(t)
}

var leaseRules = slices.Concat(leaseTokenRules, acquireRules, idRules, beliefRules, renewalRules, breakRules, boundRules, lossRules, releaseRules, waitRules, runRules, panicRules)
