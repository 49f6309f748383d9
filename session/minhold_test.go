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

// works returns a function for Run that takes the time d.
func works(d time.Duration, err error) func(context.Context, lease.Token) error {
	return func(context.Context, lease.Token) error {
		time.Sleep(d)
		return err
	}
}

// locked checks whether the lease is locked.
func (n *network) locked(t *testing.T, when string, want bool) {
	t.Helper()
	if rec := n.record(t); rec.State.Locked() != want {
		t.Errorf("%s: the record is %v, want locked: %v", when, rec.State, want)
	}
}

// Run returns when the job has returned. The lease stays locked for MinHold after the grant, also for the
// Session that had it, is not renewed, and is then released. SPEC N2.
func TestMinHold(t *testing.T) {
	const hold = 20 * time.Second
	for _, own := range []error{nil, errWork} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			a, b := n.open(t, &session.Options{Trace: &session.Trace{Ended: func(e session.EndInfo) {
				if e.Reason != lease.ErrReleased {
					t.Errorf("the term ended with %v", e)
				}
			}}}), n.open(t, nil)
			began, o := time.Now(), &session.RunOptions{MinHold: hold}
			ran, err := session.TryRun(t.Context(), a, works(time.Second, own), o)
			if took := time.Since(began); !ran || err != own || took != time.Second || a.CheckAlive() {
				t.Errorf("%v, %v after %v; alive: %v", ran, err, took, a.CheckAlive())
			}
			renewals := n.count(lease.ActionRenew)
			for range 18 {
				for _, h := range []*holder{a, b} {
					if ran, err := session.TryRun(t.Context(), h, works(0, nil), o); ran || err != nil {
						t.Fatalf("TryRun returns %v, %v after %v", ran, err, time.Since(began))
					}
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Until(began.Add(hold - time.Millisecond)))
			n.locked(t, "before the end", true)
			if n.count(lease.ActionRenew) > renewals || n.count(lease.ActionRelease) > 0 {
				t.Error("the lease held until MinHold was renewed or released")
			}
			time.Sleep(time.Until(began.Add(hold + time.Second)))
			n.locked(t, "after the end", false)
			if lost := a.losses(); len(lost) != 0 {
				t.Errorf("lost: %v", lost)
			}
			if ran, err := session.TryRun(t.Context(), a, works(time.Minute, nil), o); !ran || err != nil {
				t.Error(ran, err)
			}
			n.locked(t, "after a job that took longer", false)
		})
	}
}

// What ends the hold early, and what does not.
func TestMinHoldEnds(t *testing.T) {
	const hold, duration = 20 * time.Second, 30 * time.Second
	releases := func(ctx context.Context, h *holder) error { return h.Release(context.WithoutCancel(ctx)) }
	closes := func(ctx context.Context, h *holder) error { return h.Close(context.WithoutCancel(ctx)) }
	for what, c := range map[string]struct {
		within, after func(context.Context, *holder) error
		panics        bool
		until         time.Duration // when the lease is released or has ended
		requests      int           // releases
	}{
		"a panic":              {panics: true, until: hold, requests: 1},
		"Close":                {after: closes, until: duration},
		"Release":              {after: releases, until: 0, requests: 1},
		"Release in the job":   {within: releases, until: 0, requests: 1},
		"Close in the job":     {within: closes, until: 0, requests: 1},
		"ReleaseUncertain":     {after: func(ctx context.Context, h *holder) error { return h.ReleaseUncertain(ctx) }, until: hold, requests: 1},
		"work that stops late": {after: func(ctx context.Context, h *holder) error { _, done := h.WhileHeld(ctx); done(); return nil }, until: hold, requests: 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, &session.Options{Duration: duration})
				began := time.Now()
				func() {
					defer func() { _ = recover() }()
					_, err := session.TryRun(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
						if c.panics {
							panic("f")
						}
						if c.within != nil {
							return c.within(ctx, h)
						}
						return nil
					}, &session.RunOptions{MinHold: hold})
					if err != nil {
						t.Error(err)
					}
				}()
				if c.after != nil {
					if err := c.after(t.Context(), h); err != nil {
						t.Error(err)
					}
				}
				for n.record(t).State.Locked() {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(began); took < c.until || took > c.until+100*time.Millisecond {
					t.Errorf("locked for %v, want %v", took, c.until)
				}
				synctest.Wait()
				if got := n.count(lease.ActionRelease); got != c.requests {
					t.Errorf("%d releases, want %d", got, c.requests)
				}
			})
		})
	}
}

// With Again, Run waits for its own lease that is held until MinHold like for that of another holder.
func TestMinHoldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = 20 * time.Second
		n := overMemory()
		h := n.open(t, nil)
		var began []time.Time
		err := session.Run(t.Context(), h, func(context.Context, lease.Token) error {
			began = append(began, time.Now())
			return nil
		}, &session.RunOptions{MinHold: hold, Again: func(error) bool { return len(began) < 5 }})
		if err != nil {
			t.Error(err)
		}
		for i := 1; i < len(began); i++ {
			if d := began[i].Sub(began[i-1]); d < hold || d > hold+2*time.Second {
				t.Errorf("term %d began %v after the one before", i, d)
			}
		}
		if got := n.count(lease.ActionAcquire); got > 2*len(began) {
			t.Errorf("%d acquires for %d terms", got, len(began))
		}
	})
}

// MinHold passes on the clock of the authority, too, however the clocks drift.
func TestMinHoldWithDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: time.Minute, MaxClockDrift: 0.1})
		if err := session.Run(t.Context(), h, works(0, nil), &session.RunOptions{MinHold: 45 * time.Second}); err != nil {
			t.Error(err)
		}
		time.Sleep(54 * time.Second) // the authority's clock may have advanced by only 54 s * 0.9/1.1
		n.locked(t, "within MinHold", true)
		time.Sleep(2 * time.Second)
		n.locked(t, "after MinHold", false)
	})
}

// Run refuses a MinHold or a ProgressTimeout that it cannot keep.
func TestTimesThatNeedASession(t *testing.T) {
	n := overMemory()
	h, forever := n.open(t, nil), n.open(t, &session.Options{Duration: lease.Infinite})
	plain := struct{ lease.Lease }{h.Session}
	for _, c := range []struct {
		l    lease.Lease
		o    session.RunOptions
		want string
	}{
		{h, session.RunOptions{MinHold: -1}, "RunOptions.MinHold = -1ns: must not be negative"},
		{h, session.RunOptions{MinHold: 30}, "RunOptions.MinHold = 30ns: must be at least 1ms; did you forget the unit?"},
		{h, session.RunOptions{MinHold: 31 * time.Second}, "RunOptions.MinHold = 31s: must be at most the Duration of the Session, 30s"},
		{forever, session.RunOptions{MinHold: time.Second}, "RunOptions.MinHold = 1s: must be 0, because the Duration of the Session is infinite"},
		{plain, session.RunOptions{MinHold: time.Second}, "RunOptions.MinHold = 1s: must be 0 unless the Lease is a Session"},
		{plain, session.RunOptions{ProgressTimeout: time.Second}, "RunOptions.ProgressTimeout = 1s: must be 0 unless the Lease is a Session"},
	} {
		_, err := session.TryRun(t.Context(), c.l, idle, &c.o)
		if !errors.Is(err, lease.ErrOption) || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
