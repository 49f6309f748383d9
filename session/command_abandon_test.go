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

// If an Acquire was abandoned, the Session releases its ID after the request of the Acquire has
// been answered. Until then, the Session sends no other Acquire. SPEC H3, H6.
func TestAbandonedAcquireIsUndone(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    fault
		releases int
	}{
		{"granted late", slow(2*time.Second, 0), 1},
		{"answered late", slow(0, 2*time.Second), 1},
		{"its answer lost", loseAnswer, 1},
		{"its request lost", loseRequest, 1},
		{"refused", func(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(2 * time.Second)
			return lease.Result{}, lease.ErrHeldByOther
		}, 0},
		{"breaking", func(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(2 * time.Second)
			return lease.Result{}, lease.ErrBreaking
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				a, b := n.open(t, nil), n.open(t, nil)
				n.meet(lease.ActionAcquire, c.fault)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				abandoned := a.ID()
				if ok, err := a.Acquire(ctx); ok || err == nil {
					t.Fatalf("%v, %v", ok, err)
				}
				if a.ID() == abandoned {
					t.Error("the ID was not retired")
				}
				a.acquire(t) // the Acquire waits for its turn
				if n.together(lease.ActionAcquire) != 1 {
					t.Error("two acquires overlapped")
				}
				releases := n.requests(lease.ActionRelease)
				if len(releases) != c.releases {
					t.Fatalf("%d releases, want %d", len(releases), c.releases)
				}
				for _, r := range releases {
					if r.ID != abandoned {
						t.Errorf("%v was released, not %v", r.ID, abandoned)
					}
				}
				all := n.requests()
				if last := all[len(all)-1]; last.Action != lease.ActionAcquire || last.Proposed == abandoned {
					t.Errorf("the last request was %+v", last.Request)
				}
				a.release(t)
				b.acquire(t)
				a.notLost(t)
			})
		})
	}
}

// If an Acquire is granted after it was abandoned, the Session never believes that it holds the
// lease. SPEC H3.
func TestLateWinNeverSurfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, slow(2*time.Second, 2*time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if ok, _ := h.Acquire(ctx); ok {
			t.Fatal("acquired")
		}
		for range 100 {
			if h.CheckAlive() || h.Token() != "" {
				t.Fatal("the late grant is believed")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
		h.notLost(t)
	})
}

// If the authority does not return from a request, the Session gives the request up after twice the
// RequestTimeout. While two requests that were given up have not returned, the Session sends no
// other request. SPEC H3.
func TestAcquireGivesUpAnAuthorityThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{RequestTimeout: time.Second})
		n.meet(lease.ActionAcquire, n.hangAfter, n.hang)
		for range 2 {
			began := time.Now()
			h.unknown(t, errNoAnswer)
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("gave up after %v", took)
			}
		}
		began := time.Now()
		h.unknown(t, nil)
		if took := time.Since(began); took != 0 || n.count(lease.ActionAcquire) != 2 {
			t.Errorf("%d acquires were sent, the last call took %v", n.count(lease.ActionAcquire), took)
		}
		n.heal()
		synctest.Wait()
		h.acquire(t)
	})
}

// If Release ends an Acquire of unknown outcome, the Session releases the ID of the Acquire and
// does not propose the ID again. SPEC H6, H17.
func TestReleaseOfAnUnknownAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, failAnswer)
		id := h.ID()
		h.unknown(t, errNet)
		h.release(t)
		if n.record(t).State != lease.Available || h.ID() == id {
			t.Errorf("the record is %+v, the next ID %v", n.record(t), h.ID())
		}
	})
}

// If a refusal of an Acquire shows an ID whose release has no certain outcome, the Session retries
// the release. The Acquire then returns an error, not false without an error. SPEC H7.
func TestRefusalNamesAnUnsettledID(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, n *network, h *holder)
	}{
		{"a release that failed", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.meet(lease.ActionRelease, failRequest)
			if err := h.Release(context.Background()); !errors.Is(err, errNet) {
				t.Fatal(err)
			}
		}},
		{"an acquire that lands after its undoing was refused", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, late(10*time.Second-1))
			h.unknown(t, errNet)
			h.release(t)
			time.Sleep(10 * time.Second)
		}},
		{"a loss whose release failed", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.keep(lease.ActionRelease, failRequest)
			n.keep(lease.ActionRenew, failAnswer)
			time.Sleep(35 * time.Second)
			h.lostOnce(t, lease.ErrExpired)
			n.keep(lease.ActionRelease, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				c.before(t, n, h)
				if n.record(t).State != lease.Leased {
					t.Fatal("not in force")
				}
				h.unknown(t, nil)
				synctest.Wait()
				if r := n.record(t); r.State != lease.Available {
					t.Fatalf("not released: %+v", r)
				}
				h.acquire(t)
			})
		})
	}
}

// If a refusal hides the ID in force, the ID can be one that the Session still has to release, so
// the outcome of the Acquire is not certain. SPEC H1, H7.
func TestRefusalThatMayNameAnUnsettledID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, b := n.open(t, nil), n.open(t, nil)
		n.keep(lease.ActionAcquire, hideOthers)
		h.acquire(t)
		n.meet(lease.ActionRelease, failRequest)
		_ = h.Release(context.Background())
		h.unknown(t, nil)
		h.acquire(t)
		b.refused(t)
	})
}

// If the authority hides the ID in force, Wait returns while the Session still has to release an
// ID, because an Acquire sends the release again. After the release, Wait waits. SPEC H7, H21.
func TestWaitUnderAHiddenID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, b := n.open(t, nil), n.open(t, nil)
		n.keep(lease.ActionRead, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, err := send(ctx)
			res.Record.ID = lease.ID{}
			return res, err
		})
		h.acquire(t)
		n.meet(lease.ActionRelease, failRequest)
		_ = h.Release(context.Background())
		began := time.Now()
		if err := h.Wait(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("a Wait for the own release returned %v after %v", err, time.Since(began))
		}
		_ = h.Release(context.Background())
		b.acquire(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a Wait for another holder returned %v after %v", err, time.Since(began))
		}
	})
}

// An infinite orphan would stay forever. To prevent an orphan, the Session acquires the lease under
// the ID and releases it. Both requests write the record, so the lost request can no longer write
// it. SPEC H3.
func TestInfiniteOrphanIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		n.meet(lease.ActionAcquire, loseRequest)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		id := h.ID()
		if ok, err := h.Acquire(ctx); ok || err == nil {
			t.Fatal(ok, err)
		}
		time.Sleep(time.Minute)
		var got []lease.Action
		for _, r := range n.requests() {
			got = append(got, r.Action)
			if r.ID != id && r.Proposed != id {
				t.Errorf("a request without the ID: %+v", r.Request)
			}
		}
		want := []lease.Action{lease.ActionAcquire, lease.ActionRelease, lease.ActionAcquire, lease.ActionRelease}
		if len(got) != len(want) {
			t.Fatalf("sent %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("sent %v, want %v", got, want)
			}
		}
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}

// A finite orphan lasts for its duration at most, so the Session does not acquire and release its
// ID. SPEC H3.
func TestFiniteOrphanIsLeftToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, loseRequest)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = h.Acquire(ctx)
		time.Sleep(time.Minute)
		if n.count(lease.ActionAcquire) != 1 || n.count(lease.ActionRelease) != 1 {
			t.Errorf("sent %v", n.requests())
		}
		h.release(t) // no release is pending any more
		if n.count(lease.ActionRelease) != 1 {
			t.Error("released once more")
		}
	})
}
