package leasetest_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// If a lease can use any authority, the suite tests it against all H clauses of SPEC.md. It passes an
// authority of its own to the lease, so that it can change the requests and the answers.
func ExampleTestLease() {
	_ = func(t *testing.T) { // in a file of tests: func TestSession(t *testing.T)
		leasetest.TestLease(t, func(t testing.TB, h leasetest.Holder) lease.Lease {
			s, err := session.New(h.Authority, h.Name, &session.Options{
				Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock,
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err) // the suite also passes invalid holders
			}
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			return s
		}, &leasetest.Options{Bubble: true})
	}
}

// A Remote is a lease that has its own authority, like the client of a lock service.
type Remote struct {
	lease.Lease
	unplugged *atomic.Bool
}

// DialService simulates the constructor of such a client.
func DialService(t testing.TB, service lease.Authority, name, owner string, d time.Duration) *Remote {
	unplugged := new(atomic.Bool)
	requests := leasefault.Script(service, leasefault.Always(leasefault.Any, leasefault.If(unplugged.Load, leasefault.FailRequest)))
	s, err := session.New(requests, name, &session.Options{Owner: owner, Duration: d, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return &Remote{s, unplugged}
}

// If a lease has its own authority, the suite can only call its methods. It tests more rules if
// Options.Lease.Revoke and Options.Lease.Cut are set.
func ExampleTestLease_outside() {
	_ = func(t *testing.T) { // in a file of tests: func TestRemote(t *testing.T)
		services := map[string]lease.Authority{} // by the name of the lease; each rule uses different names
		leasetest.TestLease(t, func(t testing.TB, h leasetest.Holder) lease.Lease {
			if services[h.Name] == nil {
				services[h.Name] = memory.New(nil).Authority()
			}
			return DialService(t, services[h.Name], h.Name, h.Owner, h.Duration)
		}, &leasetest.Options{
			Bubble: true,
			Can:    leasetest.Everything &^ (leasetest.CanUseAuthority | leasetest.CanUseClock | leasetest.CanTakeOver),
			Lease: leasetest.LeaseHooks{
				Revoke: func(t testing.TB, name string, period time.Duration) {
					if _, err := lease.Break(context.Background(), services[name], name, lease.Grace(period)); err != nil {
						t.Error(err)
					}
				},
				Cut: func(_ testing.TB, l lease.Lease) (mend func()) {
					l.(*Remote).unplugged.Store(true)
					return func() { l.(*Remote).unplugged.Store(false) }
				},
			},
		})
	}
}
