package leasetest_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The suites, held to this module's own implementations.

func TestMemoryStore(t *testing.T) {
	leasetest.TestStore(t, func(testing.TB) lease.Store { return memory.New(nil) }, &leasetest.Options{Bubble: true})
}

func TestMemoryAuthority(t *testing.T) {
	leasetest.TestAuthority(t, func(testing.TB) lease.Authority { return lease.NewAuthority(memory.New(nil)) },
		&leasetest.Options{Bubble: true})
}

// In real time, as against an engine.
func TestMemoryInRealTime(t *testing.T) {
	o := &leasetest.Options{Unit: 100 * time.Millisecond, Slack: time.Second}
	t.Run("Store", func(t *testing.T) {
		t.Parallel()
		leasetest.TestStore(t, func(testing.TB) lease.Store { return memory.New(nil) }, o)
	})
}

// Limits that are those of the service leave the suite enough room.
func TestMemoryWithLimits(t *testing.T) {
	leasetest.TestAuthority(t, func(testing.TB) lease.Authority {
		return lease.NewAuthority(memory.New(&memory.Options{Limits: lease.AzureLimits}))
	}, &leasetest.Options{Bubble: true, Limits: lease.AzureLimits})
}

func TestFencingGuard(t *testing.T) {
	leasetest.TestGuard(t, func(testing.TB) leasetest.Guard { return new(fencing.Guard) }, &leasetest.Options{Bubble: true})
}

func TestStepKeepsTheVectors(t *testing.T) { leasetest.TestStep(t, lease.Step) }

// newSession makes the lease under test.
func newSession(t testing.TB, h leasetest.Holder) lease.Lease {
	s, err := session.New(h.Authority, h.Name, &session.Options{
		Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock,
		Logger: slog.New(slog.DiscardHandler),
	})
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

// A lease that brings its own authority is held to what can be seen of it, and to the more,
// the more can be done to it.
func TestSessionFromOutside(t *testing.T) {
	const bare = leasetest.Everything &^ (leasetest.CanUseAuthority | leasetest.CanUseClock)
	for name, o := range map[string]leasetest.Options{
		"Bare":   {Can: bare},
		"Clocks": {Can: leasetest.Everything &^ leasetest.CanUseAuthority},
		"Revoke": {Can: bare, Revoke: revoke},
		"Cut":    {Can: bare, Cut: cut},
		"All":    {Can: leasetest.Everything &^ leasetest.CanUseAuthority, Revoke: revoke, Cut: cut},
	} {
		t.Run(name, func(t *testing.T) {
			o.Bubble = true
			leasetest.TestLease(t, newForeignSession, &o)
		})
	}
}

// An outsider is a session over an authority that the suite does not know.
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
