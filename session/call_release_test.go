package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
)

// If the answer to an Acquire arrives at the moment when Release is called, the Session does not
// believe the answer. From the call of Release on, CheckAlive returns false. SPEC H17, H3.
func TestReleaseJustBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var h *holder
		released := make(chan error, 1)
		h = n.open(t, nil)
		n.meet(lease.ActionAcquire, then(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			released <- h.Release(ctx) // Release returns before the answer arrives
		}))
		h.unknown(t, lease.ErrReleased)
		h.alive(t, false)
		if err := <-released; !errors.Is(err, context.Canceled) {
			t.Errorf("release: %v", err)
		}
		synctest.Wait()
		h.alive(t, false)
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}
