package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// The rule must pass if requests reach the authority late. The lease that a race renewed may have
// ended before the acquire arrives. SPEC A2.
func TestRaceOfASlowAcquire(t *testing.T) {
	o := &Options{Bubble: true, Seed: 1, Slack: 2 * time.Second}
	s := &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		return leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Always(lease.ActionAcquire, leasefault.DelayRequest(2*time.Second)))
	}}
	if found := s.violations(t, "A2/a-renewal-races-an-acquire"); len(found) != 0 {
		t.Error(found[0])
	}
}

// If the clock of a store jumps forward between a load and the swap, less of the lease is left than
// its duration. MinRemaining of an authority over that store must then be counted from the swap.
// Other rules compare times of the store with times of the test, and do not pass. SPEC A5.
func TestMinRemainingAfterAJumpOfTheStore(t *testing.T) {
	const jump = 100 * time.Millisecond
	o := &Options{Bubble: true, Seed: 1, Slack: jump / 2}
	s := &suite{rules: certaintyRules, options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		clock := leasefault.NewClock()
		return lease.NewAuthority(leasefault.ScriptStore(leasefault.Skew(memory.New(nil), clock),
			leasefault.Always(leasefault.Swap, leasefault.Before(func() { clock.Step(jump) }))))
	}}
	if found := s.violations(t, "A5/min-remaining-is-certain"); len(found) != 0 {
		t.Error(found[0])
	}
}
