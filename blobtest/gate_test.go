package blobtest

import (
	"context"
	"sync"
	"testing"
)

// SPEC W2: a gate admits one request at a time. A wait ends with its context. An unused gate takes no
// memory.
func TestGates(t *testing.T) {
	var g gates
	var a, b int // the race detector reports two requests inside one gate
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			name, n := "a", &a
			if i%2 == 0 {
				name, n = "b", &b
			}
			leave, err := g.enter(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			*n++
		})
	}
	wg.Wait()
	if a != 30 || b != 30 || len(g.m) != 0 {
		t.Errorf("%d and %d were inside, %d gates are left", a, b, len(g.m))
	}
	leave, err := g.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(ctx, "a"); err != context.Canceled {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	leave()
	if len(g.m) != 0 {
		t.Errorf("%d gates are left", len(g.m))
	}
}
