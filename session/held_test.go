package session_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

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
		done, cancel := h.WhileHeld(context.Background())
		if cancel(); context.Cause(done) != context.Canceled {
			t.Errorf("the cause is %v", context.Cause(done))
		}
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
