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

// If the context of Acquire is done, Acquire sends no request. If the context ends during the call,
// Acquire returns at once. SPEC H2.
func TestAcquireContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.Canceled) || n.count() != 0 {
			t.Errorf("%v, %v with a done context, and %d requests", ok, err, n.count())
		}
		n.meet(lease.ActionAcquire, slow(3*time.Second, 0))
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v, %v after %v", ok, err, time.Since(began))
		}
		var op *lease.OpError
		if _, err := h.Acquire(ctx); !errors.As(err, &op) || op.Op != "acquire" || op.Name != name {
			t.Errorf("the error is %#v", err)
		}
	})
}

// Acquire returns after the hooks have been called, even if its context ends at the moment when the
// Acquire is decided. SPEC H2.
func TestAcquireWaitsForItsHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var notified atomic.Bool
		h := overMemory().open(t, &session.Options{Trace: &session.Trace{Acquire: func(session.AcquireInfo) {
			cancel()
			time.Sleep(time.Second)
			notified.Store(true)
		}}})
		tok, ok, err := h.AcquireWithToken(ctx)
		if !ok || err != nil || !notified.Load() || tok != h.Token() {
			t.Errorf("%v, %v, %v; the hook has returned: %v", tok, ok, err, notified.Load())
		}
		h.alive(t, true)
	})
}

// An answer without a time shows nothing. If it says that the lease is breaking, the own ID may be in
// force, so the outcome of the Acquire is unknown. SPEC A1, H1.
func TestAnswerWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, refuse(lease.ErrBreaking, lease.Result{}))
		h.unknown(t, lease.ErrBreaking)
		h.acquire(t)
	})
}
