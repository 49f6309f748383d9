package redislease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

func hold(t *testing.T, s *redislease.Store, owner string) lease.Lease {
	return enginetest.NewLease(t, leasetest.Holder{Name: "x", Owner: owner, Duration: time.Minute, Authority: s.Authority()})
}

// With Options.Replicas, the store does not acknowledge a grant that the replica has not received.
// The outcome of the grant is unknown, and no client believes that it holds the lease.
func TestFailoverWithReplicas(t *testing.T) {
	p := newPair(t)
	o := &redislease.Options{Replicas: 1, ReplicaTimeout: 300 * time.Millisecond}
	a := store(t, client(t, p.primary.Addr()), o).Authority()
	first := hold(t, store(t, client(t, p.primary.Addr()), o), "first")
	patient := store(t, client(t, p.primary.Addr()), &redislease.Options{Replicas: 1, ReplicaTimeout: 20 * time.Second})
	do(t, patient.Authority(), "y", acquire(idA, time.Minute), 0)
	p.link.Isolate()
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), {Action: lease.ActionRead}} {
		res, err := a.Do(t.Context(), "y", req)
		if err == nil || lease.CodeOf(err).Refusal() || !res.Now.IsZero() {
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
