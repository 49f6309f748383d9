package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
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
