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
// and the lease becomes an orphan. The next Release releases the orphan, and so does Close.
// SPEC H3, H17.
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

// If a release is refused because another ID of the same Session is in force, the Session also
// releases the other ID. SPEC H7c.
func TestRefusedReleaseShowsAnotherID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		n.meet(lease.ActionAcquire, late(time.Minute), nil, late(time.Hour))
		h.unknown(t, errNet) // the first ID
		other.acquire(t)
		h.release(t) // the release is refused and the first ID is settled, but the request with the first ID has not arrived
		other.release(t)
		h.unknown(t, errNet) // the second ID
		time.Sleep(61 * time.Second)
		if r := n.record(t); r.State != lease.Leased || r.Owner != h.Owner() {
			t.Fatalf("the first request has not landed: %+v", r)
		}
		h.release(t) // the release of the second ID is refused, and the refusal shows the first ID
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the lease is still locked: %+v", r)
		}
	})
}

// SPEC H3, H7: an Acquire of an infinite lease was given up, and its ID could not be acquired and
// released because another holder had the lease. If the Acquire arrives long afterwards, the
// Session finds the orphan.
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

// SPEC H3, H7: an Acquire of an infinite lease was sent twice. The second request was granted and
// the lease was released. If the first request arrives after the release, the Session finds the
// orphan.
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

// SPEC H3, H17: the Session acquires and releases the ID of an infinite orphan only if the orphan
// can exist. The ID is not settled while the acquire or the release has no answer.
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

// findsItsOrphan lets a late Acquire arrive. The next Acquire finds the orphan and returns an
// error, and the Acquire after it is granted.
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
