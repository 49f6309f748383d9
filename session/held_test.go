package session_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A context of WhileHeld ends with its incarnation. Its cause is the reason for the end. SPEC H20.
func TestWhileHeld(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		end   func(t *testing.T, n *network, h *holder)
		cause error
	}{
		{"lost at U", func(t *testing.T, n *network, h *holder) {
			n.keep(lease.ActionRenew, n.hang)
			time.Sleep(time.Until(until(t, h)))
		}, lease.ErrStopWindow},
		{"broken", func(t *testing.T, n *network, h *holder) { n.breaks(t, 0); time.Sleep(10 * time.Second) }, lease.ErrBroken},
		{"released", func(t *testing.T, _ *network, h *holder) { h.release(t) }, lease.ErrReleased},
		{"released in vain", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionRelease, failRequest)
			_ = h.Release(ctx)
		}, lease.ErrReleased},
		{"handed over", func(t *testing.T, _ *network, h *holder) { h.handOver(t, lease.ID{9}) }, lease.ErrReleased},
		{"closed", func(_ *testing.T, _ *network, h *holder) { _ = h.Close(ctx) }, lease.ErrReleased},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				tok := h.acquire(t)
				held, cancel := h.WhileHeld(ctx)
				defer cancel()
				freed, free := h.WhileHeld(ctx)
				if free(); !errors.Is(context.Cause(freed), context.Canceled) {
					t.Errorf("freed because of %v", context.Cause(freed))
				}
				time.Sleep(5 * time.Second)
				if held.Err() != nil {
					t.Fatalf("ended early: %v", context.Cause(held))
				}
				c.end(t, n, h)
				synctest.Wait()
				cause := context.Cause(held)
				if held.Err() == nil || !errors.Is(cause, c.cause) {
					t.Errorf("the cause is %v, want %v", cause, c.cause)
				}
				if lost := (*lease.LostError)(nil); errors.As(cause, &lost) != (c.cause != lease.ErrReleased) || lost != nil && lost.Token != tok {
					t.Errorf("the cause is %#v", cause)
				}
			})
		})
	}
}

// If the lease is not held, a context of WhileHeld ends at once. It also ends with its parent
// context. No event of another incarnation ends it. SPEC H20, H19.
func TestWhileHeldBelongsToOneIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		none, cancel := h.WhileHeld(context.Background())
		defer cancel()
		if context.Cause(none) != error(lease.ErrNotHeld) {
			t.Errorf("the cause is %v", context.Cause(none))
		}
		h.acquire(t)
		parent, end := context.WithCancel(context.Background())
		child, cancel := h.WhileHeld(parent)
		defer cancel()
		if end(); child.Err() == nil {
			t.Error("its parent has ended")
		}
		h.alive(t, true)
		first, cancel := h.WhileHeld(context.Background())
		defer cancel()
		h.release(t)
		if first.Err() == nil {
			t.Error("ends with its incarnation")
		}
		h.acquire(t)
		second, cancel := h.WhileHeld(context.Background())
		defer cancel()
		time.Sleep(time.Hour)
		if second.Err() != nil {
			t.Errorf("ended by %v", context.Cause(second))
		}
	})
}

// A slow hook does not delay the end of a context. SPEC H20.
func TestWhileHeldBeforeHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Trace: &session.Trace{
			Renew: func(i session.RenewInfo) {
				if i.Err != nil {
					time.Sleep(time.Hour)
				}
			},
		}})
		h.acquire(t)
		held, cancel := h.WhileHeld(context.Background())
		defer cancel()
		n.breaks(t, 0)
		time.Sleep(10 * time.Second)
		if held.Err() == nil {
			t.Error("waits for the hook")
		}
	})
}

// If a hook ends its goroutine, as t.FailNow does, no call waits forever. SPEC H1.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Trace: &session.Trace{
			Acquire:  func(session.AcquireInfo) { runtime.Goexit() },
			Released: func(session.ReleaseInfo) { runtime.Goexit() },
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if ok, err := h.Acquire(ctx); !ok || err != nil {
			t.Errorf("acquire: %v, %v", ok, err)
		}
		began := time.Now()
		if err := h.Release(ctx); err != nil || time.Since(began) != 0 {
			t.Errorf("release: %v after %v", err, time.Since(began))
		}
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
	})
}
