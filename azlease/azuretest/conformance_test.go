package azuretest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// suiteOptions say what the suites may expect of azlease. The clock is as coarse as a second, because
// the service tells what is left of a lease in whole seconds.
func suiteOptions() *leasetest.Options {
	return &leasetest.Options{
		Bubble: true,
		Unit:   time.Second,
		Slack:  time.Second,
		Limits: lease.AzureLimits,
		Lacks:  leasetest.OwnClock | leasetest.Watching | leasetest.Dialects | leasetest.Disclosing | leasetest.TakingOver,
	}
}

func TestAuthorityConformance(t *testing.T) {
	leasetest.TestAuthority(t, func(t testing.TB) lease.Authority {
		leases, _ := newLeases(t)
		return leases
	}, suiteOptions())
}

func TestLeaseConformance(t *testing.T) {
	o := suiteOptions()
	o.Lacks &^= leasetest.Disclosing // a holder is shown all that it needs: its own ID, and what is left of a break
	o.Authority = func(t testing.TB) lease.Authority {
		leases, _ := newLeases(t)
		return leases
	}
	leasetest.TestLease(t, newLease, o)
}

// newLease makes a holder of the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Over, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}
