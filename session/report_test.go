package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// After an outage, the LostError has the last error before the loss. It has no error that came
// before the last grant. SPEC H15.
func TestLossTellsTheLastError(t *testing.T) {
	for _, healed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			h.acquire(t)
			n.meet(lease.ActionRenew, failRequest)
			time.Sleep(15 * time.Second)
			n.meet(lease.ActionRenew, func(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
				if healed {
					return n.Authority.Do(ctx, name, lease.Request{Action: lease.ActionRenew, ID: h.ID()})
				}
				return lease.Result{}, errNet
			})
			if healed {
				time.Sleep(10 * time.Second)
				n.keep(lease.ActionRenew, n.hang)
			} else {
				n.keep(lease.ActionRenew, failRequest)
			}
			time.Sleep(time.Minute)
			lost := h.lostOnce(t, lease.ErrExpired)
			if got := errors.Is(lost, errNet); got == healed {
				t.Errorf("healed: %v, lost: %v", healed, lost)
			}
		})
	}
}
