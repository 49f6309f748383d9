package session_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

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

// A nil context is a bug of the caller, and panics as in package context, but it must not
// leave the Session locked for those who recover.
func TestReleaseOfNilContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := session.New(overMemory(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Release(nil) did not panic")
				}
			}()
			//lint:ignore SA1012 that is the case
			_ = s.Release(nil)
		}()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// SPEC H9: what an authority says is sure is believed only as far as it can be.
func TestNegativeSureIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, sure := range []time.Duration{math.MinInt64, -1, 0} {
			net := overMemory()
			net.meet(lease.ActionAcquire, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
				res, err := send(ctx)
				res.MinRemaining = sure
				return res, err
			})
			s, err := session.New(net, name, &session.Options{Duration: lease.Infinite, Margin: lease.Infinite / 8, MaxClockDrift: 1e-9})
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := s.Acquire(t.Context()); ok || err == nil || s.CheckAlive() {
				t.Errorf("MinRemaining %d: Acquire %v, %v", sure, ok, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// An untold is a Lease that tells no cause when it is lost, as Akka's may.
type untold struct{ s *session.Session }

func (u untold) Acquire(ctx context.Context) (bool, error) { return u.s.Acquire(ctx) }
func (u untold) Release(ctx context.Context) error         { return u.s.Release(ctx) }
func (u untold) CheckAlive() bool                          { return u.s.CheckAlive() }
func (u untold) OnLost(f func(error)) func() bool          { return u.s.OnLost(func(error) { f(nil) }) }

// SPEC N1: Run hides no loss, of whatever Lease.
func TestRunTellsUntoldLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := overMemory()
		s, err := session.New(net, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = session.Run(t.Context(), untold{s}, func(ctx context.Context, _ lease.Token) error {
			net.act(t, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
			<-ctx.Done()
			return nil
		}, nil)
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("Run: %v, want %v", err, lease.ErrLost)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A Run inside another tells its own loss only.
func TestRunInsideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := overMemory()
		outer, err := session.New(net, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := session.New(overMemory(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var within error
		err = session.Run(t.Context(), outer, func(ctx context.Context, _ lease.Token) error {
			within = session.Run(ctx, inner, func(ctx context.Context, _ lease.Token) error {
				net.act(t, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
				<-ctx.Done()
				return nil
			}, nil)
			return nil
		}, nil)
		if !errors.Is(err, lease.ErrBroken) || within != nil {
			t.Errorf("outer: %v, want broken; inner: %v, want nil", err, within)
		}
		if err := errors.Join(inner.Close(t.Context()), outer.Close(t.Context())); err != nil {
			t.Error(err)
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
