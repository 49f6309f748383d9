package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// An authority that is asked slowly is no broken one: what a race renewed may be over before the
// acquire arrives. SPEC A2.
func TestRaceOfASlowAcquire(t *testing.T) {
	o := &Options{Bubble: true, Seed: 1, Slack: 2 * time.Second}
	s := &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		return leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Always(lease.ActionAcquire, leasefault.DelayRequest(2*time.Second)))
	}}
	if found := s.violations(t, "A2/a-renewal-races-an-acquire"); len(found) != 0 {
		t.Error(found[0])
	}
}
