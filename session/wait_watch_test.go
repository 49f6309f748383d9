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

// A holder that watches learns at once of a break whose grace period is shorter than its
// RenewInterval. A holder that watches keeps the lease for the grace period, and no other holder
// has the lease during the grace period. A holder that does not watch learns of the break too late.
// SPEC H13.
func TestWatchLearnsOfABreak(t *testing.T) {
	for _, watch := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h, next := n.open(t, &session.Options{Watch: watch, Rand: newSteady()}), n.open(t, nil)
			h.acquire(t)
			time.Sleep(time.Second)
			n.breaks(t, 5*time.Second)
			over := time.Now().Add(5 * time.Second)
			synctest.Wait()
			if notified := h.breaks(); (len(notified) == 1) != watch {
				t.Fatalf("watch %v: told %v", watch, notified)
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

// A holder that watches learns at once that another holder has taken its lease over.
func TestWatchLearnsOfATakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Owner: "worker-1"})
		next := n.open(t, &session.Options{TakeOver: true, Owner: "worker-1"})
		h.acquire(t)
		time.Sleep(time.Second)
		next.acquire(t)
		synctest.Wait()
		h.lostOnce(t, lease.ErrTakenOver)
	})
}

// A break takes effect after a renewal, and the signal of the break arrives before the answer to
// the renewal. The holder learns of the break as soon as the renewal is answered.
func TestWatchDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		n.meet(lease.ActionRenew, slow(0, 2*time.Second))
		time.Sleep(10 * time.Second) // a renewal has taken effect, and has no answer yet
		n.breaks(t, 4*time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if notified := h.breaks(); len(notified) != 1 {
			t.Fatalf("told %v", notified)
		}
	})
}

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

// A read that fails, or returns no record or no ID, changes nothing.
func TestWatchThatShowsNothing(t *testing.T) {
	for name, f := range map[string]fault{"failed": failRequest, "empty": refuse(0, lease.Result{}), "no ID": hideIDs} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			n.keep(lease.ActionRead, f)
			h := n.open(t, &session.Options{Watch: true})
			h.acquire(t)
			time.Sleep(time.Hour)
			if h.alive(t, true); n.count(lease.ActionRenew) > 400 || n.count(lease.ActionRead) == 0 {
				t.Errorf("%s: %d renewals, %d looks", name, n.count(lease.ActionRenew), n.count(lease.ActionRead))
			}
		})
	}
}

// A record that was read for one incarnation does not affect the next incarnation. Close waits for
// a read that is in flight. Once the lease is released, the Session reads no record. SPEC H18, H19.
func TestWatchEndsWithItsIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Rand: newSteady()})
		h.acquire(t)
		synctest.Wait()
		looks := n.count(lease.ActionRead)
		n.keep(lease.ActionRelease, slow(1, 0)) // the release changes the record when the watch has ended
		n.meet(lease.ActionRead, slow(time.Second, 2*time.Second))
		n.act(t, lease.Request{Action: lease.ActionBreak}) // the record changes
		synctest.Wait()
		h.release(t)
		h.acquire(t)
		time.Sleep(5 * time.Second)
		if n.count(lease.ActionRenew) != 0 {
			t.Error("the second incarnation was renewed for what the first was shown")
		}
		h.alive(t, true)
		n.meet(lease.ActionRead, slow(0, 3*time.Second))
		n.act(t, lease.Request{Action: lease.ActionBreak})
		synctest.Wait()
		began := time.Now()
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 3*time.Second {
			t.Errorf("Close returned after %v, while a look was under way", d)
		}
		if got := n.count(lease.ActionRead) - looks; got != 3 {
			t.Errorf("%d looks; want one for each break, and one as the second incarnation began", got)
		}
	})
}

// The option Watch draws no random numbers while a watch lasts or if the authority is not a
// Watcher. Only renewals draw random numbers.
func TestWatchDrawsNothing(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := lease.NewAuthority(memory.New(nil))
			if !lasts {
				a = blind{a}
			}
			var reads [2]int
			for i, watch := range []bool{false, true} {
				draws := &counted{}
				s, err := session.New(a, "jobs/nightly", &session.Options{Watch: watch, Rand: draws})
				if err != nil {
					t.Fatal(err)
				}
				if ok, err := s.Acquire(t.Context()); !ok || err != nil {
					t.Fatal(ok, err)
				}
				time.Sleep(time.Hour)
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				reads[i] = draws.n
			}
			if reads[0] != reads[1] {
				t.Errorf("where a watch lasts, %v: %d and, watching, %d draws", lasts, reads[0], reads[1])
			}
		})
	}
}

// Close does not wait for a watch that ignores its context. SPEC H18.
func TestWatchThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		n.Authority = &watching{Authority: n.Authority, lost: time.Hour}
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		synctest.Wait()
		began := time.Now()
		if err := h.Close(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("close: %v after %v", err, time.Since(began))
		}
	})
}

// A read can make a renewal of its incarnation due at once, but not a renewal of the next
// incarnation. SPEC H19.
func TestUrgencyEndsWithItsIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Rand: newSteady()})
		h.acquire(t)
		n.meet(lease.ActionRenew, slow(0, 4*time.Second))
		time.Sleep(10 * time.Second) // a renewal is in flight
		n.breaks(t, 10*time.Second)
		synctest.Wait()
		h.release(t)
		h.acquire(t)
		time.Sleep(15 * time.Second)
		if renewals := n.requests(lease.ActionRenew); len(renewals) != 2 {
			t.Errorf("sent: %v", renewals)
		}
	})
}

// counted is a source of bytes that counts its reads.
type counted struct{ n int }

func (c *counted) Read(p []byte) (int, error) {
	c.n++
	for i := range p {
		p[i] = byte(c.n)
	}
	return len(p), nil
}

// If the reads of a holder cause signals, the holder pauses between the reads. SPEC H13.
func TestWatchOfWhatSignalsLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		n.Authority = chatty{n.Authority, make(chan struct{}, 1)}
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		time.Sleep(time.Minute)
		if looks := n.count(lease.ActionRead); looks < 60 || looks > 140 {
			t.Errorf("looked %d times in a minute", looks)
		}
		n.breaks(t, 5*time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		if notified := len(h.breaks()); notified != 1 {
			t.Errorf("told of %d breaks", notified)
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
