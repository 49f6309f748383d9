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
