package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
)

// bubble runs f in a bubble of its own. A panic in f, which is how rapid ends a case, comes out
// on the calling goroutine.
func bubble(t *testing.T, f func()) {
	t.Helper()
	var panicked any
	synctest.Test(t, func(*testing.T) {
		defer func() { panicked = recover() }()
		f()
	})
	if panicked != nil {
		panic(panicked)
	}
}

// everyOther meets every other request with f, the first included.
func everyOther(f fault) fault {
	var n atomic.Int64
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		if n.Add(1)%2 == 1 {
			return f(ctx, send)
		}
		return send(ctx)
	}
}
