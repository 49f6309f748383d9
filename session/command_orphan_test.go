package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An Acquire of an infinite lease is delayed in the network. Release returns nil, because another
// holder has the lease. When the other holder has released the lease, the delayed request arrives,
// and the lease becomes an orphan. The next Release releases it, and so does Close. SPEC H3, H17.
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
					t.Errorf("the lease is still locked: %+v", r)
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
			t.Errorf("the lease is still locked: %+v", r)
		}
	})
}

// SPEC H3, H7: an Acquire without end that arrives long after it was given up, when the ID
// could not be acquired and released because another held the lease, is found again.
func TestInfiniteOrphanIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		net := overMemory()
		s, err := session.New(net, name, &session.Options{Duration: lease.Infinite})
		if err != nil {
			t.Fatal(err)
		}
		net.meet(lease.ActionAcquire, func(_ context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			go func() {
				time.Sleep(time.Minute)
				_, _ = send(context.Background())
			}()
			return lease.Result{}, errors.New("no answer")
		})
		if ok, err := s.Acquire(ctx); ok || err == nil {
			t.Fatalf("Acquire without an answer: %v, %v", ok, err)
		}
		other, err := session.New(net, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := other.Acquire(ctx); !ok || err != nil {
			t.Fatalf("the other's Acquire: %v, %v", ok, err)
		}
		if err := errors.Join(s.Release(ctx), other.Close(ctx)); err != nil {
			t.Fatal(err)
		}
		findsItsOrphan(t, net, s)
	})
}

// SPEC H3, H7: the same for a request that was repeated: what was granted is released, and the
// first one, without end, arrives after that.
func TestRepeatedOrphanIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		net := overMemory()
		s, err := session.New(net, name, &session.Options{Duration: lease.Infinite})
		if err != nil {
			t.Fatal(err)
		}
		net.meet(lease.ActionAcquire, func(_ context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			go func() {
				time.Sleep(time.Minute)
				_, _ = send(context.Background())
			}()
			return lease.Result{}, errors.New("no answer")
		})
		if ok, err := s.Acquire(ctx); ok || err == nil {
			t.Fatalf("Acquire without an answer: %v, %v", ok, err)
		}
		if ok, err := s.Acquire(ctx); !ok || err != nil {
			t.Fatalf("Acquire again: %v, %v", ok, err)
		}
		if err := s.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if net.count(lease.ActionAcquire) != 2 || net.count(lease.ActionRelease) != 1 {
			t.Errorf("sent %v", net.requests())
		}
		findsItsOrphan(t, net, s)
	})
}

// SPEC H3, H17: an orphan without end is acquired to be released only if it may be there, and it
// is not settled while either step has no answer.
func TestInfiniteOrphansAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		h.acquire(t)
		n.act(t, lease.Request{Action: lease.ActionChange, ID: h.ID(), Proposed: lease.ID{9}})
		if h.release(t); n.count(lease.ActionAcquire) != 1 {
			t.Error("acquired what had certainly been granted, and taken away")
		}
		n.act(t, lease.Request{Action: lease.ActionRelease, ID: lease.ID{9}})
		n.meet(lease.ActionAcquire, failRequest, failRequest)
		h.unknown(t, errNet)
		if err := h.Release(t.Context()); !errors.Is(err, errNet) {
			t.Errorf("released: %v", err)
		}
		if h.release(t); n.count(lease.ActionAcquire) != 4 || n.record(t).State != lease.Available {
			t.Errorf("sent %v; the record is %+v", n.requests(), n.record(t))
		}
	})
}

// findsItsOrphan lets an Acquire land that is late: the next one finds it and is an error, the one
// after that is granted.
func findsItsOrphan(t *testing.T, net *network, s *session.Session) {
	t.Helper()
	time.Sleep(2 * time.Minute)
	if r := net.record(t); r.State != lease.Leased {
		t.Fatalf("the late Acquire did not land: %v", r)
	}
	if ok, err := s.Acquire(t.Context()); ok || err == nil || lease.CodeOf(err).Refusal() {
		t.Errorf("Acquire that finds its own orphan: %v, %v, want an error that is no refusal by another", ok, err)
	}
	if ok, err := s.Acquire(t.Context()); !ok || err != nil {
		t.Errorf("Acquire after that: %v, %v", ok, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
