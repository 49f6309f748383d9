package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// A Session renews its lease for as long as it holds the lease, and the token stays the same.
// SPEC H9, H11.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		tok := h.acquire(t)
		end := time.Now().Add(6 * time.Hour)
		for time.Now().Before(end) {
			time.Sleep(7 * time.Second)
			if !h.CheckAlive() || h.Token() != tok || n.record(t).State != lease.Leased {
				t.Fatalf("not held: %+v", n.record(t))
			}
		}
		h.notLost(t)
		renewals := n.requests(lease.ActionRenew)
		for i, r := range renewals[1:] {
			if gap := r.at.Sub(renewals[i].at); gap > 10*time.Second || gap < 9*time.Second {
				t.Fatalf("%v from renewal %d to the next", gap, i)
			}
		}
		if n.together(lease.ActionRenew) != 1 {
			t.Error("two renewals overlapped")
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
