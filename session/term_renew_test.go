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

// The Session draws the time between two renewals at random for each renewal. SPEC N4.
func TestRenewalsAreJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		time.Sleep(10 * time.Minute)
		gaps := map[time.Duration]bool{}
		renewals := n.requests(lease.ActionRenew)
		for i := range renewals[1:] {
			gaps[renewals[i+1].at.Sub(renewals[i].at)] = true
		}
		if len(gaps) < len(renewals)/2 {
			t.Errorf("%d gaps of %d renewals", len(gaps), len(renewals))
		}
	})
}
