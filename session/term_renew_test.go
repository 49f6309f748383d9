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

// CheckAlive returns false from U on. U is counted from the time just before the request was sent.
// SPEC H9.
func TestCheckAliveEndsAtU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{MaxClockDrift: 0.5, RenewInterval: time.Second, RequestTimeout: 2 * time.Second})
		began := time.Now()
		n.keep(lease.ActionRenew, failRequest)
		n.meet(lease.ActionAcquire, slow(time.Second, 2*time.Second))
		h.acquire(t)
		end := began.Add(10*time.Second - 1 - time.Millisecond) // 30 s * 0.5/1.5, less the margin
		if u := until(t, h); !u.Equal(end) {
			t.Fatalf("U is %v after the sending, want %v", u.Sub(began), end.Sub(began))
		}
		time.Sleep(time.Until(end) - 1)
		h.alive(t, true)
		h.notLost(t)
		time.Sleep(time.Nanosecond)
		h.alive(t, false)
		if _, held := h.Until(); held || h.Token() != "" {
			t.Error("something is held")
		}
		if _, held := h.LastConfirmed(); held {
			t.Error("something is confirmed")
		}
		lost := h.lostOnce(t, lease.ErrExpired)
		if !errors.Is(lost, lease.ErrExpired) || lost.Token != lease.TokenOf(1) {
			t.Errorf("lost %#v", lost)
		}
	})
}

// The Session reports a loss at U even if a request hangs, and does not report the loss again when
// the request returns. SPEC H15, H11.
func TestLossThoughARenewalHangs(t *testing.T) {
	for _, c := range []struct {
		name string
		hang func(*network) fault
	}{
		{"before the effect", func(n *network) fault { return n.hang }},
		{"after the effect", func(n *network) fault { return n.hangAfter }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				n.keep(lease.ActionRenew, c.hang(n))
				h.acquire(t)
				time.Sleep(time.Until(until(t, h)) - 1)
				h.alive(t, true)
				h.notLost(t)
				time.Sleep(time.Nanosecond)
				h.lostOnce(t, lease.ErrExpired)
				if n.count(lease.ActionRenew) != 2 { // the Session gave up the first renewal
					t.Errorf("%d renewals were sent", n.count(lease.ActionRenew))
				}
				n.heal()
				time.Sleep(time.Hour)
				h.lostOnce(t, lease.ErrExpired)
				if n.record(t).State.Locked() {
					t.Errorf("the record is %+v", n.record(t))
				}
			})
		})
	}
}

// If a renewal fails, the Session retries the renewal until U, with jitter. SPEC H11.
func TestRenewalIsRetried(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
	}{
		{"request lost", loseRequest}, {"answer lost", loseAnswer},
		{"request fails", failRequest}, {"answer fails", failAnswer},
		{"conflict", refuse(lease.ErrConflict, lease.Result{})},
		{"corrupt", refuse(lease.ErrCorrupt, lease.Result{})},
		{"a bad argument", refuse(lease.ErrID, lease.Result{})},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				n.meet(lease.ActionRenew, c.fault, c.fault)
				tok := h.acquire(t)
				time.Sleep(time.Hour)
				h.alive(t, true)
				h.notLost(t)
				if h.Token() != tok {
					t.Error("another token")
				}
				for i, r := range n.requests(lease.ActionRenew)[:3] {
					if i > 0 {
						gap := r.at.Sub(n.requests(lease.ActionRenew)[i-1].at)
						if gap < 1250*time.Millisecond || gap > 7500*time.Millisecond { // RetryDelay is 2.5 s, RequestTimeout 5 s
							t.Errorf("retry %d after %v", i, gap)
						}
					}
				}
			})
		})
	}
	t.Run("until U", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.keep(lease.ActionRenew, failRequest)
			h.acquire(t)
			end := until(t, h)
			time.Sleep(time.Hour)
			h.lostOnce(t, lease.ErrExpired)
			renewals := n.requests(lease.ActionRenew)
			last := renewals[len(renewals)-1].at
			if len(renewals) < 8 || len(renewals) > 16 || end.Sub(last) > 2500*time.Millisecond || !last.Before(end) {
				t.Errorf("%d renewals, the last %v before U", len(renewals), end.Sub(last))
			}
		})
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

// If a renewal is refused, the Session reports a loss at once. But if the record in the refusal
// shows that the Session's own ID is in force, the lease is not lost. SPEC H11.
func TestRefusedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.act(t, lease.Request{Action: lease.ActionRelease, ID: h.ID()})
		n.act(t, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Duration: time.Hour})
		time.Sleep(10 * time.Second)
		lost := h.lostOnce(t, lease.ErrIDMismatch)
		if lost.Err == nil || !errors.Is(lost, lease.ErrIDMismatch) {
			t.Errorf("lost %v", lost)
		}
		if n.count(lease.ActionRelease) != 0 {
			t.Error("released what is another's")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		self := func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, _ := send(ctx)
			return res, lease.ErrIDMismatch
		}
		n.keep(lease.ActionRenew, self)
		time.Sleep(time.Hour)
		h.alive(t, true)
		h.notLost(t)
		for i, r := range n.requests(lease.ActionRenew)[1:] {
			if gap := r.at.Sub(n.requests(lease.ActionRenew)[i].at); gap < 9*time.Second {
				t.Fatalf("renewed again after %v", gap)
			}
		}
	})
}

// A refusal that shows our own ID never shortens the belief. The Session sends the renewal again.
// SPEC H11.
func TestRefusalThatShowsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		end := until(t, h)
		n.keep(lease.ActionRenew, refuse(lease.ErrIDMismatch, lease.Result{Record: n.record(t), Now: time.Now()}))
		time.Sleep(time.Until(end) - 1)
		if h.alive(t, true); n.count(lease.ActionRenew) < 4 {
			t.Errorf("asked %d times", n.count(lease.ActionRenew))
		}
		time.Sleep(time.Nanosecond)
		h.lostOnce(t, lease.ErrExpired)
	})
}

// A granted renewal does not restore an incarnation that has ended. If a renewal is carried out
// after the loss, the Session releases its ID. SPEC H12.
func TestRenewalAfterTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Rand: newSteady()})
		// The renewal arrives while the record is still Leased, and after the release at the loss
		// has failed.
		n.keep(lease.ActionRelease, failRequest)
		n.keep(lease.ActionRenew, failRequest)
		n.meet(lease.ActionRenew, slow(19_950*time.Millisecond, time.Second))
		h.acquire(t)
		id := h.ID()
		time.Sleep(30 * time.Second)
		h.lostOnce(t, lease.ErrExpired)
		if r := n.record(t); r.State != lease.Leased || r.ID != id {
			t.Fatalf("the renewal did not commit: %+v", r)
		}
		n.keep(lease.ActionRelease, nil)
		time.Sleep(5 * time.Second)
		h.lostOnce(t, lease.ErrExpired)
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
		for _, r := range n.requests(lease.ActionRelease) {
			if r.ID != id {
				t.Errorf("released %v", r.ID)
			}
		}
	})
}

// The answer to a renewal of an incarnation that has ended does not affect the next incarnation.
// SPEC H19, H12.
func TestAnswerOfADeadIncarnation(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*testing.T, *network, *holder)
		lost int
	}{
		{"released", func(t *testing.T, _ *network, h *holder) { h.release(t) }, 0},
		{"lost", func(_ *testing.T, n *network, _ *holder) {
			n.keep(lease.ActionRenew, failRequest)
			time.Sleep(30 * time.Second)
			n.keep(lease.ActionRenew, nil)
		}, 1},
	} {
		for _, answer := range []struct {
			name  string
			fault fault
		}{
			{"a refusal", func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
				time.Sleep(35 * time.Second)
				return lease.Result{}, lease.ErrBroken
			}},
			{"a grant", func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
				res, err := send(ctx)
				time.Sleep(35 * time.Second)
				return res, err
			}},
			{"an error", func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
				time.Sleep(35 * time.Second)
				return lease.Result{}, errNet
			}},
		} {
			t.Run(c.name+"/"+answer.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, nil)
					n.meet(lease.ActionRenew, answer.fault)
					first := h.acquire(t)
					time.Sleep(10 * time.Second)
					c.end(t, n, h)
					h.alive(t, false)
					second := h.acquire(t)
					if second.Compare(first) <= 0 {
						t.Errorf("token %v after %v", second, first)
					}
					time.Sleep(time.Hour)
					h.alive(t, true)
					if h.Token() != second || len(h.losses()) != c.lost {
						t.Errorf("holds %v, not %v; lost %v", h.Token(), second, h.losses())
					}
					if n.together(lease.ActionRenew) > 2 { // one renewal of each incarnation
						t.Error("renewals of one incarnation overlapped")
					}
				})
			})
		}
	}
}

// If the belief ends because no renewal was granted, the Session releases the lease, so that no
// contender waits for an orphan. SPEC H12.
func TestExpiredLeaseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, b := n.open(t, nil), n.open(t, nil)
		n.keep(lease.ActionRenew, failAnswer)
		h.acquire(t)
		id := h.ID()
		renewals := 0
		for h.CheckAlive() {
			renewals = n.count(lease.ActionRenew)
			time.Sleep(time.Second)
		}
		if h.lostOnce(t, lease.ErrExpired); renewals == 0 {
			t.Fatal("never renewed")
		}
		if rs := n.requests(lease.ActionRelease); len(rs) != 1 || rs[0].ID != id {
			t.Errorf("released %+v", rs)
		}
		b.acquire(t)
	})
}

// An infinite lease has no U, but the Session still renews it, and LastConfirmed returns when it
// was last confirmed. SPEC H9.
func TestInfiniteLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		h.acquire(t)
		for range 1000 {
			time.Sleep(time.Second)
			asked, held := h.LastConfirmed()
			if !held || time.Since(asked) > 15*time.Second { // RenewInterval and RequestTimeout
				t.Fatalf("confirmed %v ago", time.Since(asked))
			}
			if u, held := h.Until(); !held || !u.IsZero() {
				t.Fatalf("U is %v", u)
			}
		}
		n.keep(lease.ActionRenew, loseRequest)
		time.Sleep(time.Hour)
		h.alive(t, true)
		if asked, _ := h.LastConfirmed(); time.Since(asked) < time.Hour {
			t.Errorf("confirmed %v ago", time.Since(asked))
		}
		n.keep(lease.ActionRenew, nil)
		n.breaks(t, 0)
		time.Sleep(10 * time.Second)
		h.lostOnce(t, lease.ErrBroken)
	})
}

// If the authority grants a shorter duration than requested, the Session still renews the lease in
// time. SPEC H9, H11.
func TestGrantForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		less := sure(4*time.Second, 0)
		n.keep(lease.ActionAcquire, less)
		n.keep(lease.ActionRenew, less)
		h.acquire(t)
		if u := until(t, h); time.Until(u) >= 4*time.Second {
			t.Errorf("believes for %v", time.Until(u))
		}
		time.Sleep(time.Hour)
		h.alive(t, true)
		h.notLost(t)
	})
}

// If a renewal is granted for less time than its answer took, the lease is lost. SPEC H9.
func TestRenewalAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionRenew, sure(time.Second, time.Second))
		h.acquire(t)
		time.Sleep(11 * time.Second)
		h.lostOnce(t, lease.ErrExpired)
	})
}
