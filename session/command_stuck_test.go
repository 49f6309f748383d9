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

// The fault exit ends the goroutine of the request, and does not carry out the request.
func exit(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	runtime.Goexit()
	panic("not reached")
}

// The fault exitAfter carries out the request, and then ends the goroutine of the request.
func exitAfter(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	_, _ = send(ctx)
	return exit(ctx, send)
}

// An acquire whose Do ends its goroutine has an unknown outcome. Whether or not the acquire was
// granted, the Session can afterwards acquire an infinite lease, and Release can release it.
// SPEC H1, H3.
func TestAcquireThatEndsItsGoroutine(t *testing.T) {
	for what, f := range map[string]fault{"not granted": exit, "granted": exitAfter} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h, other := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, nil)
				n.meet(lease.ActionAcquire, f)
				h.unknown(t, nil)
				h.alive(t, false)
				h.release(t)
				other.acquire(t)
				other.release(t)
				n.meet(lease.ActionAcquire, f)
				h.unknown(t, nil)
				h.acquire(t)
				time.Sleep(time.Hour)
				h.alive(t, true)
			})
		})
	}
}
