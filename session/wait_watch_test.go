package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// If nothing fails, a holder that watches sends as many renewals as a holder that does not watch,
// and at most one read for each renewal. After a release, the holder sends no request.
func TestWatchCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		time.Sleep(time.Hour)
		renewals, looks := n.count(lease.ActionRenew), n.count(lease.ActionRead)
		if renewals < 360 || renewals > 400 || looks > renewals+1 {
			t.Errorf("%d renewals and %d looks in an hour", renewals, looks)
		}
		h.alive(t, true)
		h.release(t)
		synctest.Wait()
		before := n.count(lease.ActionRenew, lease.ActionRead)
		time.Sleep(time.Hour)
		if after := n.count(lease.ActionRenew, lease.ActionRead); after != before {
			t.Errorf("%d requests after the release", after-before)
		}
		h.acquire(t) // the holder watches the record again
		n.breaks(t, time.Second)
		synctest.Wait()
		if len(h.breaks()) != 1 {
			t.Error("the second incarnation is not watched")
		}
	})
}
