package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

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

// Close waits for a step that a timer has begun.
func TestCloseWaitsForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var over atomic.Bool
		began := make(chan struct{})
		h := n.open(t, &session.Options{Trace: &session.Trace{Ended: func(session.EndInfo) {
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

// An acquire and a release have the values of their caller's context, and a renewal has none.
func TestContextsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx := context.WithValue(t.Context(), valueKey{}, "x")
		_, _ = h.Acquire(ctx)
		time.Sleep(time.Minute)
		_ = h.Release(ctx)
		for _, r := range n.requests() {
			if (r.Action == lease.ActionRenew) == (r.value == "x") {
				t.Errorf("%v: value %v", r.Action, r.value)
			}
		}
	})
}
