package leasetest_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The suites, held to this module's own implementations.

// A usual store has the authority that most stores have, unlike that of package memory.
type usual struct{ *memory.Store }

func (u usual) Authority() lease.Authority { return lease.NewAuthority(u.Store) }

// The store and the authority of the examples pass.
func TestExamples(t *testing.T) {
	leasetest.TestStore(t, NewShelf, &leasetest.Options{Bubble: true})
	leasetest.TestAuthority(t, NewClerk, &leasetest.Options{Bubble: true})
}

func TestMemoryStore(t *testing.T) {
	var clock *leasefault.Clock
	leasetest.TestStore(t, func(testing.TB) lease.Store {
		clock = leasefault.NewClock()
		return usual{memory.New(&memory.Options{Clock: clock})}
	}, &leasetest.Options{Bubble: true, Store: leasetest.StoreHooks{
		StepClock: func(_ testing.TB, _ lease.Store, d time.Duration) { clock.Step(d) },
	}})
}

// In real time, as against an engine.
func TestMemoryInRealTime(t *testing.T) {
	leasetest.TestStore(t, func(testing.TB) lease.Store { return memory.New(nil) }, &leasetest.Options{Unit: 100 * time.Millisecond, Slack: time.Second})
}

// Limits leave the suite enough room: those of the service, a longest period above and below the longest
// duration, and a longest duration below the 60 seconds of an acquire of an old version.
func TestMemoryWithLimits(t *testing.T) {
	for what, limits := range map[string]lease.Limits{
		"service":        vectors.AzureLimits,
		"longer period":  {MinDuration: vectors.AzureLimits.MinDuration, MaxDuration: vectors.AzureLimits.MaxDuration, MaxPeriod: 90 * time.Second},
		"shorter period": {MinDuration: vectors.AzureLimits.MinDuration, MaxDuration: vectors.AzureLimits.MaxDuration, MaxPeriod: 20 * time.Second},
		"short leases":   {MaxDuration: 30 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			o := &leasetest.Options{Bubble: true, Limits: limits}
			if what == "short leases" {
				o.Unit = 250 * time.Millisecond
			}
			o.Authority = leasetest.AuthorityHooks{
				Put: put,
				Connect: func(_ testing.TB, transmit leasetest.Transmit) lease.Authority {
					return lease.NewAuthority(linked.Store(memory.New(&memory.Options{Limits: limits}), transmit))
				},
			}
			leasetest.TestAuthority(t, func(testing.TB) lease.Authority {
				return storedAuthority(memory.New(&memory.Options{Limits: limits}))
			}, o)
		})
	}
}

// An overStore is an authority that shows its store to Options.Authority.Put.
type overStore struct {
	lease.Authority
	lease.Watcher
	lease.Lister
	store lease.Store
}

func storedAuthority(s lease.Store) lease.Authority {
	a := lease.NewAuthority(s)
	return overStore{a, a.(lease.Watcher), a.(lease.Lister), s}
}

func put(t testing.TB, a lease.Authority, name string, r lease.Record) {
	s := a.(overStore).store
	old, err := s.Load(t.Context(), name)
	if err == nil {
		_, err = s.Swap(t.Context(), name, old, r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStepKeepsTheVectors(t *testing.T) { leasetest.TestStep(t, lease.Step) }

func newSession(t testing.TB, h leasetest.Holder) lease.Lease {
	return newSessionWith(t, h, session.Options{})
}

func newSessionWith(t testing.TB, h leasetest.Holder, o session.Options) lease.Lease {
	o.Owner, o.TakeOver, o.Duration, o.Clock, o.Logger = h.Owner, h.TakeOver, h.Duration, h.Clock, slog.New(slog.DiscardHandler)
	s, err := session.New(h.Authority, h.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

func TestSession(t *testing.T) {
	leasetest.TestLease(t, newSession, &leasetest.Options{Bubble: true})
}

// A session that watches its lease is held to the same, and to what a watch promises.
func TestWatchingSession(t *testing.T) {
	leasetest.TestLease(t, func(t testing.TB, h leasetest.Holder) lease.Lease {
		return newSessionWith(t, h, session.Options{Watch: true})
	}, &leasetest.Options{Bubble: true})
}

// A lease with an authority of its own is held to what can be seen of it, and to more with more hooks.
func TestSessionFromOutside(t *testing.T) {
	const bare = leasetest.Everything &^ (leasetest.CanUseAuthority | leasetest.CanUseClock)
	for name, o := range map[string]leasetest.Options{
		"Bare":   {Can: bare},
		"Clocks": {Can: leasetest.Everything &^ leasetest.CanUseAuthority},
		"Revoke": {Can: bare, Lease: leasetest.LeaseHooks{Revoke: revoke}},
		"Cut":    {Can: bare, Lease: leasetest.LeaseHooks{Cut: cut}},
		"All":    {Can: leasetest.Everything &^ leasetest.CanUseAuthority, Lease: leasetest.LeaseHooks{Revoke: revoke, Cut: cut}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Bubble = true
			leasetest.TestLease(t, newForeignSession, &o)
		})
	}
}

// A foreignSession is a session over an authority that the suite does not know.
type foreignSession struct {
	*session.Session
	down atomic.Bool
}

var authorities sync.Map // of outsiders, by the name of the lease: one a subtest

func newForeignSession(t testing.TB, h leasetest.Holder) lease.Lease {
	if h.Authority != nil {
		t.Error("it cannot use Holder.Authority, and gets one")
	}
	o := new(foreignSession)
	auth, _ := authorities.LoadOrStore(h.Name, lease.NewAuthority(memory.New(nil)))
	t.Cleanup(func() { authorities.Delete(h.Name) })
	h.Authority = leasefault.Script(auth.(lease.Authority), leasefault.Always(leasefault.Any, leasefault.If(o.down.Load, leasefault.FailRequest)))
	o.Session = newSession(t, h).(*session.Session)
	return o
}

func revoke(t testing.TB, name string, period time.Duration) {
	auth, _ := authorities.Load(name)
	if _, err := lease.Break(context.Background(), auth.(lease.Authority), name, lease.Grace(period)); err != nil {
		t.Error(err)
	}
}

func cut(_ testing.TB, l lease.Lease) (mend func()) {
	l.(*foreignSession).down.Store(true)
	return func() { l.(*foreignSession).down.Store(false) }
}
