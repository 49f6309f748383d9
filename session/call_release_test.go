package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// If the context of Release is done, Release still ends the belief and sends its request. SPEC H17.
func TestReleaseWithADoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		n.meet(lease.ActionRelease, slow(time.Second, 0))
		want := lease.OpError{Op: "release", Name: name, Err: context.Canceled}
		if err := h.Release(ctx); !errors.Is(err, context.Canceled) || err.Error() != want.Error() {
			t.Errorf("release: %v, want %v", err, &want)
		}
		h.alive(t, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
		h.notLost(t)
	})
}

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
