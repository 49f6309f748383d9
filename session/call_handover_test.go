package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

func (h *holder) handOver(t testing.TB, to lease.ID) {
	t.Helper()
	if err := h.HandOver(context.Background(), to); err != nil {
		t.Fatalf("hand over: %v", err)
	}
}

// A hand-over gives the lease to the receiver's ID. No third holder can acquire the lease in between.
// The receiver's token is newer, and the handlers of the sender are not called. SPEC H14.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		giver, receiver, third := n.open(t, nil), n.open(t, nil), n.open(t, nil)
		first := giver.acquire(t)
		receiver.refused(t) // the refusal does not change the ID
		to := receiver.ID()
		giver.handOver(t, to)
		giver.alive(t, false)
		third.refused(t)
		giver.refused(t)
		second := receiver.acquire(t)
		if first != lease.TokenOf(1) || second != lease.TokenOf(3) || receiver.ID() != to {
			t.Errorf("token %v after %v, ID %v given to %v", second, first, receiver.ID(), to)
		}
		time.Sleep(time.Hour)
		receiver.alive(t, true)
		giver.notLost(t)
		if giver.release(t); n.count(lease.ActionRelease) != 0 {
			t.Error("the giver released what it gave")
		}
		if op := n.requests(lease.ActionChange); len(op) != 1 {
			t.Errorf("changed %v", op)
		}
	})
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

// If the outcome of a HandOver is unknown, its incarnation has ended, and HandOver can be called
// again. SPEC H14.
func TestHandOverIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
	}{
		{"request lost", loseRequest}, {"answer lost", loseAnswer},
		{"request fails", failRequest}, {"answer fails", failAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				giver, receiver := n.open(t, nil), n.open(t, nil)
				first := giver.acquire(t)
				n.meet(lease.ActionChange, c.fault, c.fault)
				for range 2 {
					if err := giver.HandOver(context.Background(), receiver.ID()); err == nil {
						t.Fatal("the hand-over did not fail")
					}
					giver.alive(t, false)
				}
				giver.handOver(t, receiver.ID())
				if second := receiver.acquire(t); second.Compare(first) <= 0 {
					t.Errorf("token %v after %v", second, first)
				}
				if n.count(lease.ActionRelease) != 0 {
					t.Error("released")
				}
				if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, lease.ErrNotHeld) {
					t.Errorf("once more: %v", err)
				}
				giver.notLost(t)
			})
		})
	}
}

// A renewal in flight does not disturb a HandOver, no matter when its answer arrives. SPEC H14,
// H12.
func TestHandOverDuringARenewal(t *testing.T) {
	for _, f := range []fault{slow(2*time.Second, 0), slow(0, 2*time.Second), failAnswer} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			giver, receiver := n.open(t, nil), n.open(t, nil)
			giver.acquire(t)
			n.keep(lease.ActionRenew, f)
			n.meet(lease.ActionChange, slow(time.Second, time.Second), failRequest)
			for n.count(lease.ActionRenew) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if err := giver.HandOver(ctx, receiver.ID()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("hand over: %v", err)
			}
			time.Sleep(10 * time.Second)
			receiver.acquire(t)
			if n.count(lease.ActionRelease) != 0 {
				t.Error("released")
			}
			giver.notLost(t)
		})
	}
}

// If the outcome of a HandOver is unknown, a Release gives the HandOver up. An Acquire that finds
// the ID still in force also gives it up. SPEC H14, H7.
func TestHandOverGivenUp(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, h *holder)
	}{
		{"released", func(t *testing.T, h *holder) { h.release(t) }},
		{"acquired", func(t *testing.T, h *holder) { h.unknown(t, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				giver, receiver := n.open(t, nil), n.open(t, nil)
				giver.acquire(t)
				n.meet(lease.ActionChange, failRequest)
				if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, errNet) {
					t.Fatal(err)
				}
				c.end(t, giver)
				if synctest.Wait(); n.record(t).State != lease.Available {
					t.Errorf("the record is %+v", n.record(t))
				}
				if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, lease.ErrNotHeld) {
					t.Errorf("once more: %v", err)
				}
				giver.acquire(t)
			})
		})
	}
}

// If the outcome of a HandOver is unknown, the next grant to the sender ends the HandOver.
// SPEC H14, H19.
func TestHandOverEndsWithTheNextGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		giver, receiver := n.open(t, nil), n.open(t, nil)
		giver.acquire(t)
		n.meet(lease.ActionChange, failAnswer)
		if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, errNet) {
			t.Fatal(err)
		}
		receiver.release(t)
		giver.acquire(t)
		n.lose(t, giver)
		if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, lease.ErrNotHeld) || n.count(lease.ActionChange) != 1 {
			t.Errorf("once more: %v; sent: %v", err, n.requests(lease.ActionChange))
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

// A lease that is breaking cannot be handed over. The Session releases the breaking lease, because
// no holder believes in it any more. A HandOver does not change a lease of another holder.
// SPEC H14.
func TestHandOverRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		giver, receiver := n.open(t, nil), n.open(t, nil)
		giver.acquire(t)
		n.breaks(t, 5*time.Second)
		if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, lease.ErrBreaking) {
			t.Errorf("hand over: %v", err)
		}
		giver.alive(t, false)
		receiver.acquire(t)
		giver.notLost(t)
		if err := giver.HandOver(context.Background(), receiver.ID()); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("once more: %v", err)
		}
	})
}

// If the lease is broken after it was handed over, the Acquire of the receiver fails. SPEC H1, H14.
func TestHandOverThenBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		giver, receiver := n.open(t, nil), n.open(t, nil)
		giver.acquire(t)
		giver.handOver(t, receiver.ID())
		n.breaks(t, 5*time.Second)
		receiver.unknown(t, lease.ErrBreaking)
		synctest.Wait()
		receiver.acquire(t) // the ID was released
	})
}

// If the authority hangs, HandOver gives up.
func TestHandOverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{RequestTimeout: time.Second})
		h.acquire(t)
		n.meet(lease.ActionChange, n.hang)
		began := time.Now()
		if err := h.HandOver(context.Background(), lease.ID{9}); !matches(err, errNoAnswer) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
