package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// Renewals are marked as urgent. An acquire and a release are not.
func TestOnlyRenewalsAreUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		time.Sleep(time.Minute)
		h.release(t)
		for _, r := range n.requests() {
			if r.urgent != (r.Action == lease.ActionRenew) {
				t.Errorf("%v: urgent %v", r.Action, r.urgent)
			}
		}
	})
}
