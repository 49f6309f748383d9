package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
)

func (h *holder) handOver(t testing.TB, to lease.ID) {
	t.Helper()
	if err := h.HandOver(context.Background(), to); err != nil {
		t.Fatalf("hand over: %v", err)
	}
}

// A HandOver with bad arguments does not end the incarnation. SPEC H14.
func TestHandOverArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx := context.Background()
		if err := h.HandOver(ctx, lease.ID{9}); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("nothing is held: %v", err)
		}
		h.acquire(t)
		for _, to := range []lease.ID{{}, h.ID()} {
			var field *lease.FieldError
			if err := h.HandOver(ctx, to); !errors.As(err, &field) || field.Code != lease.ErrProposed {
				t.Errorf("to %v: %v", to, err)
			}
		}
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := h.HandOver(done, lease.ID{9}); !errors.Is(err, context.Canceled) {
			t.Errorf("a done context: %v", err)
		}
		if h.alive(t, true); n.count(lease.ActionChange) != 0 {
			t.Error("a request was made")
		}
	})
}
