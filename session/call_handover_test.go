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

// A pending release of an earlier incarnation does not disturb a HandOver of the current
// incarnation. SPEC H14.
func TestHandOverBesideADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		giver, receiver := n.open(t, nil), n.open(t, nil)
		giver.acquire(t)
		n.meet(lease.ActionRelease, failAnswer)
		_ = giver.Release(context.Background())
		giver.acquire(t)
		n.meet(lease.ActionChange, failRequest)
		if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, errNet) {
			t.Fatal(err)
		}
		before := n.record(t)
		n.meet(lease.ActionAcquire, refuse(lease.ErrHeldByOther, lease.Result{})) // the refusal does not show who holds the lease
		giver.refused(t)
		synctest.Wait()
		if r := n.record(t); r != before {
			t.Errorf("the record is %+v", r)
		}
		giver.handOver(t, receiver.ID())
		receiver.acquire(t)
	})
}
