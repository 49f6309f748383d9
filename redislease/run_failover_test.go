package redislease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
)

// hold makes a holder over a store. The holder is closed at the end of the test.
func hold(t *testing.T, s *redislease.Store, owner string) *session.Session {
	t.Helper()
	l, err := s.Lease("x", &session.Options{Owner: owner, Duration: time.Minute, RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// awayFromFullHour waits until the next full hour is more than 10 s away. An hour is the default of
// Options.Keep. In a new hour, the epoch of a name without a record is higher.
func awayFromFullHour() {
	now := time.Now()
	if next := now.Truncate(time.Hour).Add(time.Hour); next.Sub(now) < 10*time.Second {
		time.Sleep(time.Until(next))
	}
}

// Without Options.Replicas, a failover loses the latest grant: the primary acknowledged the grant,
// but the replica did not receive it. After the failover, two holders believe that they hold the
// lease. The two holders have the same token, so no guard can tell them apart.
func TestFailoverLosesAGrant(t *testing.T) {
	awayFromFullHour()
	p := newPair(t)
	first := hold(t, store(t, client(t, p.primary.Addr()), nil), "first")
	second := hold(t, store(t, client(t, p.front.Addr()), nil), "second")
	p.link.Isolate() // the replica no longer gets the writes of the primary
	one, ok, err := first.AcquireWithToken(t.Context())
	if err != nil || !ok {
		t.Fatalf("the grant is not acknowledged: %v, %v", ok, err)
	}
	p.primary.Kill()
	p.failOver(t)
	two, ok, err := second.AcquireWithToken(t.Context())
	if err != nil || !ok {
		t.Fatalf("after the failover: %v, %v", ok, err)
	}
	if !first.CheckAlive() || !second.CheckAlive() || one != two {
		t.Errorf("the holder of token %s believes: %v; the one of token %s: %v", one, first.CheckAlive(), two, second.CheckAlive())
	}
	t.Logf("both believe, with the tokens %s and %s", one, two)
}

// With Options.Replicas, the store does not acknowledge a grant that the replica has not received.
// The outcome of the grant is unknown, and no client believes that it holds the lease.
func TestFailoverWithReplicas(t *testing.T) {
	p := newPair(t)
	o := &redislease.Options{Replicas: 1, ReplicaTimeout: 300 * time.Millisecond}
	a := store(t, client(t, p.primary.Addr()), o).Authority()
	first := hold(t, store(t, client(t, p.primary.Addr()), o), "first")
	patient := store(t, client(t, p.primary.Addr()), &redislease.Options{Replicas: 1, ReplicaTimeout: 20 * time.Second})
	if _, err := patient.Authority().Do(t.Context(), "y", acquire(idA, time.Minute)); err != nil {
		t.Fatalf("with the replica: %v", err)
	}
	p.link.Isolate()
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), {Action: lease.ActionRead}} {
		res, err := a.Do(t.Context(), "y", req)
		if err == nil || lease.CodeOf(err) != 0 || !res.Now.IsZero() {
			t.Errorf("%v without the replica: %v, %v", req.Action, res.Record, err)
		}
		if !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("%v: %v does not say what is missing", req.Action, err)
		}
	}
	if ok, err := first.Acquire(t.Context()); ok || err == nil || first.CheckAlive() {
		t.Errorf("acquire without the replica: %v, %v; it believes: %v", ok, err, first.CheckAlive())
	}
	p.primary.Kill()
	p.failOver(t)
	second := hold(t, store(t, client(t, p.front.Addr()), nil), "second")
	if ok, err := second.Acquire(t.Context()); !ok || err != nil || !second.CheckAlive() || first.CheckAlive() {
		t.Errorf("after the failover: %v, %v; the first believes: %v", ok, err, first.CheckAlive())
	}
}

// A failover still loses a grant if only one of two replicas must acknowledge, and the replica that
// has not acknowledged is promoted.
func TestFailoverToAReplicaThatDidNotAcknowledge(t *testing.T) {
	awayFromFullHour()
	p := newPair(t)
	other := newReplica(t, p.primary, p.primary.Addr())
	first := hold(t, store(t, client(t, p.primary.Addr()), &redislease.Options{Replicas: 1}), "first")
	p.link.Isolate()
	one, ok, err := first.AcquireWithToken(t.Context())
	if err != nil || !ok {
		t.Fatalf("the other replica acknowledges: %v, %v", ok, err)
	}
	p.primary.Kill()
	other.Kill()
	p.failOver(t)
	second := hold(t, store(t, client(t, p.front.Addr()), nil), "second")
	two, ok, err := second.AcquireWithToken(t.Context())
	if err != nil || !ok || one != two || !first.CheckAlive() {
		t.Errorf("%v, %v; tokens %s and %s; the first believes: %v", ok, err, one, two, first.CheckAlive())
	}
}

// After a failover has lost the last renewals of a holder, another holder is granted the lease. A
// renewal of the first holder does not renew the lease of the new holder, although the versions of
// the two records end with the same number.
func TestRenewalAfterALostGrant(t *testing.T) {
	p := newPair(t)
	a := store(t, client(t, p.primary.Addr()), nil)
	p.link.Isolate()
	do(t, a.Authority(), "x", acquire(idA, time.Minute), 0)
	old, err := a.Load(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	p.primary.Kill()
	p.failOver(t)
	b := store(t, client(t, p.front.Addr()), nil)
	do(t, b.Authority(), "x", acquire(idB, time.Minute), 0)
	now, err := b.Load(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if number := func(v string) string { return v[strings.LastIndex(v, "-"):] }; number(now.Version) != number(old.Version) {
		t.Errorf("versions %s and %s: that proves nothing", old.Version, now.Version)
	}
	if _, err := b.Swap(t.Context(), "x", old, old.Record); !errors.Is(err, lease.ErrConflict) {
		t.Errorf("a swap of the version that was lost: %v", err)
	}
}

// If a server may evict keys, it can drop a floor, and the tokens of a name then fall.
func TestEvictionLosesAFloor(t *testing.T) {
	awayFromFullHour()
	server := ownServer(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random")
	c := client(t, server.Addr())
	s := store(t, c, &redislease.Options{AssumeNoEviction: true, Keep: time.Hour})
	first := do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	last := do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	filler := strings.Repeat("x", 1000)
	for i := 0; c.Exists(t.Context(), s.FloorKey("x"), s.Key("x")).Val() > 0; i++ {
		if i > 1e6 {
			t.Fatal("nothing is evicted")
		}
		c.Set(t.Context(), "filler:"+idOf(i), filler, 0)
	}
	again := do(t, s.Authority(), "x", acquire(idB, time.Minute), 0)
	if again.Record.Epoch != first.Record.Epoch {
		t.Errorf("epoch %d after %d, and the first was %d", again.Record.Epoch, last.Record.Epoch, first.Record.Epoch)
	}
	_, err := store(t, c, nil).Load(t.Context(), "x")
	if !errors.As(err, new(*lease.PermanentError)) || !strings.Contains(err.Error(), "maxmemory-policy allkeys-random") {
		t.Errorf("a server that evicts is not refused: %v", err)
	}
}
