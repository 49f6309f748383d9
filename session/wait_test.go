package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// If Wait cannot know that the lease is locked for others, it returns, so that the caller tries. It pauses
// first if the reads fail. SPEC H21.
func TestWaitReturnsToTry(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most time.Duration
		option      *session.Options
		begin       func(t *testing.T, n *network, h *holder)
	}{
		{"every read fails", 1250 * time.Millisecond, 2500 * time.Millisecond, nil, // half to all of RetryDelay
			func(_ *testing.T, n *network, _ *holder) { n.keep(lease.ActionRead, failRequest) }},
		{"every read hangs", 6250 * time.Millisecond, 7500 * time.Millisecond, nil, // RequestTimeout before that
			func(_ *testing.T, n *network, _ *holder) { n.keep(lease.ActionRead, n.hang) }},
		{"held by an ID that it owes", 0, 0, nil, func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.meet(lease.ActionRelease, failRequest)
			_ = h.Release(context.Background())
		}},
		{"to be taken over", 0, 0, &session.Options{Owner: "node-1", TakeOver: true}, func(t *testing.T, n *network, _ *holder) {
			n.act(t, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Owner: "node-1", Duration: time.Hour})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, c.option)
				c.begin(t, n, h)
				began := time.Now()
				err := h.Wait(t.Context())
				if took := time.Since(began); err != nil || took < c.least || took > c.most {
					t.Errorf("%v after %v, want from %v to %v", err, took, c.least, c.most)
				}
			})
		})
	}
}

// If nothing fails, a holder that watches sends as many renewals as a holder that does not watch,
// and at most one read for each renewal. After a release, the holder sends no request.
func TestWatchCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		time.Sleep(time.Hour)
		renewals, reads := n.count(lease.ActionRenew), n.count(lease.ActionRead)
		if renewals < 360 || renewals > 400 || reads > renewals+1 {
			t.Errorf("%d renewals and %d reads in an hour", renewals, reads)
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
			t.Error("the second term is not watched")
		}
	})
}

// If the read after the signal of a break fails, it is repeated soon.
func TestWatchReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Duration: time.Hour}) // the first renewal is later
		h.acquire(t)
		synctest.Wait()
		n.meet(lease.ActionRead, failRequest)
		n.breaks(t, 20*time.Second)
		time.Sleep(2500 * time.Millisecond) // the default RetryDelay
		synctest.Wait()
		if len(h.breaks()) != 1 {
			t.Errorf("%d breaks are known", len(h.breaks()))
		}
	})
}
