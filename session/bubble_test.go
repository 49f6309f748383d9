package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
)

// bubble runs f in a bubble of its own. If f panics, bubble panics on the calling goroutine,
// because rapid ends a case by a panic.
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

// everyOther returns a fault that applies f to the first request, the third request and so on.
func everyOther(f fault) fault {
	var n atomic.Int64
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		if n.Add(1)%2 == 1 {
			return f(ctx, send)
		}
		return send(ctx)
	}
}
