package session_test

import (
	"context"
	"testing"

	"github.com/fencedlease/lease"
)

func (h *holder) handOver(t testing.TB, to lease.ID) {
	t.Helper()
	if err := h.HandOver(context.Background(), to); err != nil {
		t.Fatalf("hand over: %v", err)
	}
}
