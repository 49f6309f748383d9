package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// If a watch is lost, the Session begins a new watch after one RenewInterval, and reads the changes
// that it has missed.
func TestWatchIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lossy := leasefault.Lossy(lease.NewAuthority(memory.New(nil)), leasefault.CloseWatch(2*time.Second))
		n := over(lossy)
		h := n.open(t, &session.Options{Duration: 3 * time.Minute, RenewInterval: time.Minute, Watch: true})
		h.acquire(t)
		time.Sleep(3 * time.Second)
		n.breaks(t, 90*time.Second)
		time.Sleep(2 * time.Second)
		if notified := h.breaks(); len(notified) != 0 {
			t.Fatalf("told %v without a watch", notified)
		}
		time.Sleep(57 * time.Second)
		if notified := h.breaks(); len(notified) != 1 {
			t.Fatalf("told %v", notified)
		}
	})
}

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

// The Session frees the resources of a lost watch at once.
func TestLostWatchIsFreed(t *testing.T) {
	for _, holds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := &losing{Authority: lease.NewAuthority(memory.New(nil))}
			n := over(w)
			holder, other := n.open(t, &session.Options{Watch: holds}), n.open(t, nil)
			holder.acquire(t)
			if !holds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				go func() { _ = other.Wait(ctx) }()
			}
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if w.begun.Load() < 10 || w.begun.Load()-w.ended.Load() > 1 {
				t.Errorf("%d watches were begun, %d are freed", w.begun.Load(), w.ended.Load())
			}
			if err := holder.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// losing is an authority that loses every watch after a second.
type losing struct {
	lease.Authority
	begun, ended atomic.Int32
}

func (l *losing) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	l.begun.Add(1)
	context.AfterFunc(ctx, func() { l.ended.Add(1) })
	c := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(c) })
	return c, nil
}
