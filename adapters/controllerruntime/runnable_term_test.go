package controllerruntime

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A context that was canceled in the first term does not make the checks fail in the second term. GOMAXPROCS
// is 1, so a goroutine that the cancellation starts runs only when the second term calls synctest.Wait.
func TestLateCancellation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		s, err := session.New(memory.New(nil).Authority(), "leader", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		work := func(context.Context) {}
		r, err := NewRunnable(s, func(ctx context.Context, _ lease.Token) error {
			work(ctx)
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		work = func(context.Context) { cancel() }
		_ = r.run(ctx, "")
		work = func(context.Context) {
			synctest.Wait()
			if err := r.Readyz(nil); err != nil {
				t.Errorf("during the second term: %v", err)
			}
			if err := r.Healthz(nil); err != nil {
				t.Errorf("during the second term: %v", err)
			}
		}
		_ = r.run(t.Context(), "")
		if r.Readyz(nil) == nil {
			t.Error("no term runs, and Readyz returns nil")
		}
	})
}
