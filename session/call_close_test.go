package session_test

import (
	"context"
	"errors"
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
