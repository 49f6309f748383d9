package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
