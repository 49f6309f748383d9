package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A holder that watches learns of a break with less grace than its Interval at once, keeps the
// lease for the grace, and nobody holds beside it; one that does not watch learns too late.
// SPEC H13.
func TestWatchLearnsOfABreak(t *testing.T) {
	for _, watch := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h, next := n.open(t, &session.Options{Watch: watch}), n.open(t, nil)
			h.acquire(t)
			time.Sleep(time.Second)
			n.breaks(t, 5*time.Second)
			over := time.Now().Add(5 * time.Second)
			synctest.Wait()
			if told := h.breaks(); (len(told) == 1) != watch {
				t.Fatalf("watch %v: told %v", watch, told)
			}
			time.Sleep(time.Until(over) - 100*time.Millisecond)
			if !h.CheckAlive() && watch {
				t.Error("lost before the end of the grace")
			}
			time.Sleep(100 * time.Millisecond)
			next.acquire(t)
			if h.alive(t, !watch); watch {
				h.lostOnce(t, lease.ErrBroken)
			}
		})
	}
}

// A holder that watches learns at once that another has taken its lease.
func TestWatchLearnsOfATakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Owner: "worker-1"})
		next := n.open(t, &session.Options{TakeOver: true, Owner: "worker-1"})
		h.acquire(t)
		time.Sleep(time.Second)
		next.acquire(t)
		synctest.Wait()
		h.lostOnce(t, lease.ErrIDMismatch)
	})
}

// A break that takes effect after a renewal, and is signalled before the renewal is answered,
// is learned of as soon as it is.
func TestWatchDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		n.meet(lease.Renew, slow(0, 2*time.Second))
		time.Sleep(10 * time.Second) // a renewal has taken effect, and has no answer yet
		n.breaks(t, 4*time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if told := h.breaks(); len(told) != 1 {
			t.Fatalf("told %v", told)
		}
	})
}

// A watch that is lost is begun again after an Interval, and shows what happened meanwhile.
func TestWatchIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lossy := leasetest.Lossy(lease.NewAuthority(memory.New(nil)), leasetest.CloseWatch(2*time.Second))
		n := over(lossy)
		h := n.open(t, &session.Options{Duration: 3 * time.Minute, Interval: time.Minute, Watch: true})
		h.acquire(t)
		time.Sleep(3 * time.Second)
		n.breaks(t, 90*time.Second)
		time.Sleep(2 * time.Second)
		if told := h.breaks(); len(told) != 0 {
			t.Fatalf("told %v without a watch", told)
		}
		time.Sleep(57 * time.Second)
		if told := h.breaks(); len(told) != 1 {
			t.Fatalf("told %v", told)
		}
	})
}

// In good order a holder that watches sends what one that does not sends, and looks; it leaves
// nothing behind.
func TestWatchCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		time.Sleep(time.Hour)
		renewals, looks := n.count(lease.Renew), n.count(lease.Read)
		if renewals < 360 || renewals > 400 || looks > renewals+1 {
			t.Errorf("%d renewals and %d looks in an hour", renewals, looks)
		}
		h.alive(t, true)
		h.release(t)
		synctest.Wait()
		before := n.count(lease.Renew, lease.Read)
		time.Sleep(time.Hour)
		if after := n.count(lease.Renew, lease.Read); after != before {
			t.Errorf("%d requests after the release", after-before)
		}
		h.acquire(t) // and watches again
		n.breaks(t, time.Second)
		synctest.Wait()
		if len(h.breaks()) != 1 {
			t.Error("the second incarnation is not watched")
		}
	})
}
