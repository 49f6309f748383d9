package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// After Close, no request, no timer and no handler runs. SPEC H18.
func TestClose(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		begin func(t *testing.T, n *network, h *holder)
	}{
		{"unused", func(*testing.T, *network, *holder) {}},
		{"held", func(t *testing.T, _ *network, h *holder) { h.acquire(t) }},
		{"renewing", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.meet(lease.ActionRenew, slow(4*time.Second, 0))
			for n.count(lease.ActionRenew) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}},
		{"acquiring", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, slow(4*time.Second, 0))
			go func() {
				if _, err := h.Acquire(ctx); !errors.Is(err, lease.ErrReleased) {
					t.Errorf("acquire: %v", err)
				}
			}()
			time.Sleep(time.Second)
		}},
		{"undoing", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, slow(2*time.Second, 0))
			n.meet(lease.ActionRelease, slow(2*time.Second, 0))
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = h.Acquire(ctx)
			time.Sleep(2 * time.Second)
		}},
		{"telling", func(t *testing.T, n *network, h *holder) {
			h.OnLost(func(error) { time.Sleep(time.Minute) })
			h.acquire(t)
			n.breaks(t, 0)
			time.Sleep(10 * time.Second)
		}},
		{"lost, and freeing", func(t *testing.T, n *network, h *holder) {
			n.keep(lease.ActionRenew, failAnswer)
			n.meet(lease.ActionRelease, slow(2*time.Second, 0))
			h.acquire(t)
			time.Sleep(time.Until(until(t, h)))
		}},
		{"waiting", func(t *testing.T, n *network, h *holder) {
			n.act(t, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Duration: lease.Infinite})
			go func() {
				if err := h.Wait(ctx); err != nil {
					t.Errorf("wait: %v", err)
				}
			}()
			time.Sleep(time.Second)
		}},
		{"looking", func(t *testing.T, n *network, h *holder) {
			n.keep(lease.ActionRead, slow(4*time.Second, 0))
			go func() { _ = h.Wait(ctx) }()
			time.Sleep(time.Second)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				c.begin(t, n, h)
				if err := h.Close(ctx); err != nil {
					t.Fatalf("close: %v", err)
				}
				h.alive(t, false)
				requests, flying := n.count(), 0
				n.mu.Lock()
				for _, f := range n.flying {
					flying += f
				}
				n.mu.Unlock()
				if flying != 0 {
					t.Errorf("%d requests are in flight", flying)
				}
				notified := len(h.losses())
				time.Sleep(time.Hour)
				if n.count() != requests || len(h.losses()) != notified {
					t.Errorf("sent %v, told %v", n.requests()[requests:], h.losses())
				}
				if _, err := h.Acquire(ctx); !errors.Is(err, lease.ErrClosed) {
					t.Errorf("acquire: %v", err)
				}
				if err := h.Wait(ctx); err != nil || n.count() != requests {
					t.Errorf("wait: %v, after %d requests", err, n.count()-requests)
				}
				if err := h.HandOver(ctx, lease.ID{9}); !errors.Is(err, lease.ErrClosed) {
					t.Errorf("hand over: %v", err)
				}
			})
		})
	}
}

// Close returns the error of the release, and can be called again. Close stops waiting when its
// context ends. SPEC H18, H17.
func TestCloseThatErrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.meet(lease.ActionRelease, failRequest)
		if err := h.Close(context.Background()); !errors.Is(err, errNet) {
			t.Errorf("close: %v", err)
		}
		if err := h.Close(context.Background()); err != nil || n.record(t).State != lease.Available {
			t.Errorf("close again: %v; %+v", err, n.record(t))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.meet(lease.ActionRelease, n.hang)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		err := h.Close(ctx)
		var op *lease.OpError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		h.alive(t, false)
	})
}

// Close does not wait for a handler that has begun, even if a handler calls Close. SPEC H18.
func TestCloseInAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		for range 2 {
			h.OnLost(func(error) {
				began := time.Now()
				if err := h.Close(context.Background()); err != nil || time.Since(began) != 0 {
					t.Errorf("closed after %v: %v", time.Since(began), err)
				}
			})
		}
		h.acquire(t)
		n.lose(t, h)
		began := time.Now()
		if err := h.Close(context.Background()); err != nil || time.Since(began) != 0 {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
	})
}

// Two Sessions lose their leases at the same time, and the handlers of each Session close both
// Sessions. SPEC H16, H18.
func TestHandlersCloseEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		other, err := session.New(n, "jobs/other", nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Session = other
		done := make(chan struct{}, 2)
		for _, h := range []*session.Session{a.Session, b.Session} {
			h.OnLost(func(error) {
				for _, s := range []*session.Session{a.Session, b.Session} {
					if err := s.Close(context.Background()); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				done <- struct{}{}
			})
			if ok, err := h.Acquire(context.Background()); !ok {
				t.Fatal(err)
			}
		}
		n.keep(lease.ActionRenew, loseRequest)
		<-done // a handler of one Session has closed the other Session, which begins no more handlers
	})
}

// Close waits for the hook that reports a request that was given up, even if the request has
// returned in the meantime. SPEC H18.
func TestCloseWaitsForTheHookOfWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var hook atomic.Bool // whether the hook is running
		h := n.open(t, &session.Options{Trace: &session.Trace{Acquire: func(session.AcquireInfo) {
			hook.Store(true)
			time.Sleep(time.Minute)
			hook.Store(false)
		}}})
		n.meet(lease.ActionAcquire, func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(15 * time.Second) // given up after 10 s
			return lease.Result{}, errNet
		})
		go func() { _, _ = h.Acquire(context.Background()) }()
		time.Sleep(20 * time.Second)
		if synctest.Wait(); !hook.Load() {
			t.Fatal("the hook is not under way")
		}
		if err := h.Close(context.Background()); err != nil || hook.Load() {
			t.Errorf("close: %v; the hook is under way: %v", err, hook.Load())
		}
	})
}

// Close waits for a step that a timer has begun.
func TestCloseWaitsForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var over atomic.Bool
		began := make(chan struct{})
		h := n.open(t, &session.Options{Trace: &session.Trace{Lost: func(*lease.LostError) {
			close(began)
			time.Sleep(time.Second)
			over.Store(true)
		}}})
		h.acquire(t)
		n.keep(lease.ActionRenew, n.hang)
		<-began
		n.heal()
		synctest.Wait()
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !over.Load() {
			t.Error("Close returned while the timer runs")
		}
	})
}

// A release that returns only after it was given up is not sent again, whether it was granted or not.
// After Close nothing is sent. SPEC H11f, H18.
func TestCloseAfterAReleaseThatReturnsLate(t *testing.T) {
	for name, answers := range map[string]fault{
		"granted": late(time.Hour),
		"failed": func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(time.Hour)
			return lease.Result{}, errNet
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.keep(lease.ActionRelease, answers)
				if err := h.Close(context.Background()); err == nil {
					t.Error("Close returned nil, and its release had not returned")
				}
				time.Sleep(24 * time.Hour)
				if sent := n.count(lease.ActionRelease); sent != 1 {
					t.Errorf("%d releases were sent", sent)
				}
			})
		})
	}
}

// Renewals that hang have a bound in all, however many incarnations they belong to. SPEC H11g.
func TestRenewalsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{RenewInterval: time.Millisecond, RequestTimeout: 5 * time.Second})
		n.keep(lease.ActionRenew, n.hang)
		for range 1000 {
			h.acquire(t)
			time.Sleep(2 * time.Millisecond)
			h.release(t)
		}
		if most := n.together(lease.ActionRenew); most > 2 {
			t.Errorf("%d renewals were in flight", most)
		}
		n.heal()
	})
}

// Two clones of a process, made before its Acquire, acquire with the same ID. The first of them loses the
// lease at its next renewal. SPEC H11e.
func TestClones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		open := func() *holder {
			return n.open(t, &session.Options{Owner: "a", Rand: rand.NewChaCha8([32]byte{1})})
		}
		first, second := open(), open()
		first.acquire(t)
		second.acquire(t)
		time.Sleep(30 * time.Second)
		first.alive(t, false)
		first.lostOnce(t, lease.ErrTakenOver)
		if err := first.Close(context.Background()); err != nil {
			t.Errorf("Close after the loss: %v", err)
		}
		second.alive(t, true)
		second.notLost(t)
	})
}
