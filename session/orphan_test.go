package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An Acquire of an infinite lease is delayed in the network. Release returns nil, because another
// holder has the lease. When that one has released, the delayed request lands, and the lease is in
// force for nobody. The next Release gives it up, and so does Close. SPEC H3, H17.
func TestDelayedAcquireOfAnInfiniteLease(t *testing.T) {
	for _, c := range []struct {
		name   string
		giveUp func(*session.Session, context.Context) error
	}{
		{"Release", (*session.Session).Release},
		{"Close", (*session.Session).Close},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				infinite := &session.Options{Duration: lease.Infinite}
				h, other := n.open(t, infinite), n.open(t, infinite)
				n.meet(lease.ActionAcquire, late(time.Minute))
				h.unknown(t, errNet)
				other.acquire(t)
				h.release(t)
				other.release(t)
				time.Sleep(61 * time.Second)
				if r := n.record(t); r.State != lease.Leased || r.Owner != h.Owner() {
					t.Fatalf("the delayed request has not landed: %+v", r)
				}
				if err := c.giveUp(h.Session, t.Context()); err != nil {
					t.Fatal(err)
				}
				if r := n.record(t); r.State != lease.Available {
					t.Errorf("in force for nobody: %+v", r)
				}
			})
		})
	}
}

// A release that is refused because another ID of the same Session is in force gives that one up,
// too. SPEC H7c.
func TestRefusedReleaseShowsAnotherID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		n.meet(lease.ActionAcquire, late(time.Minute), nil, late(time.Hour))
		h.unknown(t, errNet) // the first ID
		other.acquire(t)
		h.release(t) // refused: the first ID is settled, but its request has not landed
		other.release(t)
		h.unknown(t, errNet) // the second ID
		time.Sleep(61 * time.Second)
		if r := n.record(t); r.State != lease.Leased || r.Owner != h.Owner() {
			t.Fatalf("the first request has not landed: %+v", r)
		}
		h.release(t) // of the second ID, which is refused and shows the first
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("in force for nobody: %+v", r)
		}
	})
}
