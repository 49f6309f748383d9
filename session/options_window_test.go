package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The usual default of StopWindow is a sixth of the Duration, but at most 5 s. If the other options
// leave less time, the default is the time that they leave, but at least half of the usual default.
// SPEC H22.
func TestStopWindowByDefault(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		o    *session.Options
		want time.Duration
	}{
		{nil, 5 * s},
		{&session.Options{Duration: 120 * s}, 5 * s},
		{&session.Options{Duration: 12 * s}, 2 * s},
		{&session.Options{Duration: 300 * time.Millisecond}, 50 * time.Millisecond},
		{&session.Options{Duration: lease.Infinite}, 5 * s},
		{&session.Options{RenewInterval: 14 * s}, 30*s - 60*time.Millisecond - s/1000 - 26500*time.Millisecond}, // the time that the other options leave
		{&session.Options{RenewInterval: s}, 5 * s},
		{&session.Options{StopWindow: 3 * s}, 3 * s},
		{&session.Options{StopWindow: -1}, -1},
	} {
		o, err := c.o.Complete()
		if err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		if o.StopWindow < c.want || o.StopWindow > c.want+time.Millisecond { // the want is computed with the exact drift
			t.Errorf("%+v: %v, want %v", c.o, o.StopWindow, c.want)
		}
		again, err := o.Complete()
		if err != nil || again.StopWindow != o.StopWindow {
			t.Errorf("%+v: completed twice it is %v, %v", c.o, again, err)
		}
	}
	for _, o := range []*session.Options{ // the options leave exactly the least time, or a nanosecond more
		{Duration: 30 * s, MaxClockDrift: 1e-12, Margin: s, RenewInterval: 10 * s, RequestTimeout: 8 * s, RetryDelay: s/2 - 2},
		{Duration: 30 * s, MaxClockDrift: 1e-12, Margin: s, RenewInterval: 10 * s, RequestTimeout: 8 * s, RetryDelay: s/2 - 1},
	} {
		if o, err := o.Complete(); err != nil || o.StopWindow < 5*s/2 || o.StopWindow > 5*s/2+1 {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// If a StopWindow is too long, the error states the longest StopWindow that fits. If the default
// StopWindow does not fit, the error names a field that the caller has set.
func TestStopWindowThatDoesNotFit(t *testing.T) {
	const s = time.Second
	fits := 30*s - 10*s - 10*s - 2500*time.Millisecond - time.Millisecond // less the drift
	for _, c := range []struct {
		o       session.Options
		refused string // the field that the error names
	}{
		{session.Options{StopWindow: fits}, "Options.StopWindow"},
		{session.Options{StopWindow: fits - 60*time.Millisecond}, ""},
		{session.Options{StopWindow: lease.Infinite - 1}, "Options.StopWindow"},
		{session.Options{RenewInterval: 14900 * time.Millisecond}, ""}, // the default StopWindow is shorter than usual
		{session.Options{RenewInterval: 17 * s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: s / 4}, ""},
		{session.Options{RenewInterval: 18 * s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: -s}, ""},
		{session.Options{RenewInterval: 18 * s, StopWindow: -s}, "Options.RenewInterval"},
		{session.Options{Duration: lease.Infinite, StopWindow: time.Hour}, ""},
	} {
		_, err := c.o.Complete()
		field := new(lease.FieldError)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.refused == "":
		case !errors.As(err, &field) || field.Field != c.refused || field.Code != lease.ErrOption || !strings.Contains(field.Bound, "must be at most"):
			t.Errorf("%+v: %v, want a refusal of %s with its bound", c.o, err, c.refused)
		}
	}
}

// The context of WhileHeld ends one StopWindow before U. Its cause is a LostError that has the
// error of the last renewal. CheckAlive returns true until U, and the lease is lost at U.
// SPEC H20a.
func TestStopWindow(t *testing.T) {
	for _, c := range []struct {
		given, want time.Duration
	}{{0, 5 * time.Second}, {2 * time.Second, 2 * time.Second}, {7 * time.Second, 7 * time.Second}, {-1, 0}} {
		t.Run(fmt.Sprint(c.given), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, &session.Options{StopWindow: c.given})
				h.acquire(t)
				held, cancel := h.WhileHeld(t.Context())
				defer cancel()
				n.keep(lease.ActionRenew, failRequest)
				u := until(t, h)
				<-held.Done()
				if left := time.Until(u); left != c.want {
					t.Errorf("the context ended %v before U, want %v", left, c.want)
				}
				cause, lost := context.Cause(held), new(lease.LostError)
				reason := lease.ErrStopWindow
				if c.want == 0 {
					reason = lease.ErrExpired
				}
				if !errors.Is(cause, lease.ErrLost) || !errors.As(cause, &lost) || lost.Reason != reason || !errors.Is(lost.Err, errNet) {
					t.Errorf("the cause is %v", cause)
				}
				if held.Err() != context.Canceled {
					t.Errorf("the error of the context is %v", held.Err())
				}
				if c.want > 0 {
					h.notLost(t)
					time.Sleep(c.want - time.Nanosecond)
					h.alive(t, true)
					time.Sleep(time.Nanosecond)
				}
				if e := h.lostOnce(t, lease.ErrExpired); !errors.Is(e, errNet) {
					t.Errorf("lost: %v", e)
				}
			})
		})
	}
}

// Work does not begin inside the stop window.
func TestWhileHeldInsideTheStopWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.keep(lease.ActionRenew, failRequest)
		time.Sleep(time.Until(until(t, h)) - 5*time.Second)
		h.alive(t, true)
		held, cancel := h.WhileHeld(t.Context())
		defer cancel()
		if cause := context.Cause(held); held.Err() == nil || !errors.Is(cause, lease.ErrStopWindow) || !errors.Is(cause, lease.ErrLost) || !errors.Is(cause, errNet) {
			t.Errorf("it ended: %v", cause)
		}
	})
}

// A renewal that is granted inside the stop window keeps the lease, but the ended context stays
// ended. Until the lease is released, Acquire returns the same incarnation. SPEC H20a.
func TestRenewalInsideTheStopWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		tok := h.acquire(t)
		held, cancel := h.WhileHeld(t.Context())
		defer cancel()
		n.keep(lease.ActionRenew, failRequest)
		<-held.Done()
		n.heal()
		time.Sleep(time.Hour)
		h.alive(t, true)
		h.notLost(t)
		if held.Err() == nil || !errors.Is(context.Cause(held), lease.ErrStopWindow) {
			t.Errorf("the context came back: %v", context.Cause(held))
		}
		if got := h.acquire(t); got != tok {
			t.Errorf("the token is %v, want %v, of the same incarnation", got, tok)
		}
		fresh, done := h.WhileHeld(t.Context())
		if fresh.Err() != nil {
			t.Errorf("a new context has ended: %v", context.Cause(fresh))
		}
		done()
		h.release(t)
		if got := h.acquire(t); got == tok {
			t.Error("the same token after a release")
		}
	})
}

// If the Session ended the context of the function, Run returns a LostError, even if the function
// returned nil and Run released the lease in time. SPEC N1.
func TestRunInsideTheStopWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		asked := 0
		err := session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
			n.keep(lease.ActionRenew, failRequest)
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		}, &session.RunOptions{Again: func(err error) bool {
			asked++
			if !errors.Is(err, lease.ErrLost) {
				t.Errorf("asked about %v", err)
			}
			return false
		}})
		if !errors.Is(err, lease.ErrLost) || !errors.Is(err, lease.ErrStopWindow) || !errors.Is(err, errNet) || asked != 1 {
			t.Errorf("run: %v; asked %d times", err, asked)
		}
		h.notLost(t) // the lease was released in time
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}

// If the lease is broken, the context ends one StopWindow before the end of the break. If less than
// one StopWindow is left, the context ends at once. SPEC H20a, H13.
func TestBreakAndTheStopWindow(t *testing.T) {
	for _, d := range []time.Duration{30 * time.Second, lease.Infinite} {
		for _, grace := range []time.Duration{3 * time.Second, 20 * time.Second} {
			t.Run(fmt.Sprint(d, " ", grace), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: d, Watch: true, Rand: newSteady()})
					h.acquire(t)
					held, cancel := h.WhileHeld(t.Context())
					defer cancel()
					// The time is half an interval after a renewal, so a read that the renewal
					// caused no longer delays another read.
					if time.Sleep(time.Hour + 5*time.Second); held.Err() != nil {
						t.Fatalf("ended without a break: %v", context.Cause(held))
					}
					n.breaks(t, grace)
					broken := time.Now()
					<-held.Done()
					notified := h.breaks()
					if len(notified) != 1 {
						t.Fatalf("told of %d breaks", len(notified))
					}
					want := max(0, notified[0].Sub(broken)-5*time.Second)
					if got := time.Since(broken); got != want {
						t.Errorf("the context ended %v after the break, want %v", got, want)
					}
					if cause := context.Cause(held); !errors.Is(cause, lease.ErrStopWindow) || !errors.Is(cause, lease.ErrBroken) || !errors.Is(cause, lease.ErrLost) {
						t.Errorf("the cause is %v", cause)
					}
					h.alive(t, true)
					time.Sleep(time.Until(notified[0]))
					h.lostOnce(t, lease.ErrBroken)
				})
			})
		}
	}
}

// If a renewal fails after the holder has learned of a break, the cause has both reasons. SPEC H20 a.
func TestCauseOfAFailureDuringABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true, Rand: newSteady()})
		h.acquire(t)
		held, cancel := h.WhileHeld(t.Context())
		defer cancel()
		time.Sleep(time.Hour)
		n.breaks(t, 25*time.Second)
		synctest.Wait()
		time.Sleep(time.Second)
		if len(h.breaks()) != 1 {
			t.Fatal("the holder has not learned of the break")
		}
		n.keep(lease.ActionRenew, failRequest)
		<-held.Done()
		if cause := context.Cause(held); !errors.Is(cause, lease.ErrStopWindow) || !errors.Is(cause, lease.ErrBroken) || !errors.Is(cause, errNet) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A deferral is a holder that has lost its lease while its work is still running. Its last renewal
// was granted, but the answer was lost, so its ID is in force.
type deferral struct {
	*holder
	n    *network
	back context.CancelFunc // the function that WhileHeld returned for the work
	lost time.Time
}

func deferred(t *testing.T, o *session.Options) *deferral {
	t.Helper()
	n := overMemory()
	d := &deferral{n: n, holder: n.open(t, o)}
	d.acquire(t)
	_, d.back = d.WhileHeld(t.Context())
	n.keep(lease.ActionRenew, failAnswer)
	d.lost = until(t, d.holder)
	time.Sleep(time.Until(d.lost))
	d.lostOnce(t, lease.ErrExpired)
	d.inForce(t, true)
	return d
}

// inForce expects that the ID is in force if want is true, or was released if want is false.
func (d *deferral) inForce(t *testing.T, want bool) {
	t.Helper()
	synctest.Wait()
	r := d.n.record(t)
	if got := r.State.Locked(); got != want || d.n.count(lease.ActionRelease) > 0 == want {
		t.Fatalf("%v after the loss: %+v, after %d releases", time.Since(d.lost), r, d.n.count(lease.ActionRelease))
	}
}

// butLoss returns nil instead of a loss, which the first Release after it returns.
func butLoss(err error) error {
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	return err
}

// After a loss, the Session releases the ID when the work has stopped, or at a call of Release,
// HandOver or Close, but not before. SPEC H20c.
func TestReleaseAfterALossIsDeferred(t *testing.T) {
	for what, end := range map[string]func(d *deferral) error{
		"the context is given back": func(d *deferral) error { d.back(); return nil },
		"Release":                   func(d *deferral) error { return butLoss(d.Release(context.Background())) },
		"Close":                     func(d *deferral) error { return d.Close(context.Background()) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := deferred(t, nil)
				time.Sleep(10 * time.Second)
				d.inForce(t, true)
				if err := end(d); err != nil {
					t.Error(err)
				}
				d.inForce(t, false)
				if d.n.count(lease.ActionRelease) != 1 {
					t.Errorf("%d releases", d.n.count(lease.ActionRelease))
				}
				d.back()
				d.back() // the function back may be called more than once
				if synctest.Wait(); d.n.count(lease.ActionRelease) != 1 {
					t.Errorf("%d releases", d.n.count(lease.ActionRelease))
				}
			})
		})
	}
}

// If a lease has several contexts, the Session releases the lease when the work under the last
// context has stopped.
func TestReleaseAfterALossWaitsForEveryContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		d := &deferral{n: n, holder: n.open(t, nil)}
		d.acquire(t)
		_, first := d.WhileHeld(t.Context())
		_, second := d.WhileHeld(t.Context())
		n.keep(lease.ActionRenew, failAnswer)
		d.lost = until(t, d.holder)
		time.Sleep(time.Until(d.lost))
		first()
		first()
		d.inForce(t, true)
		second()
		d.inForce(t, false)
	})
}

// Work that never stops delays the release until the lease has ended by itself, even if the last
// renewal was granted as late as possible. SPEC H20c.
func TestReleaseAfterALossIsDeferredWithABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deferred(t, nil)
		last := d.n.requests(lease.ActionRenew)
		bound := last[len(last)-1].at.Add(5*time.Second + 30*time.Second*1001/999)
		time.Sleep(time.Until(bound) - time.Millisecond)
		if synctest.Wait(); d.n.count(lease.ActionRelease) != 0 {
			t.Fatalf("released %v before the bound", time.Until(bound))
		}
		time.Sleep(2 * time.Millisecond)
		if synctest.Wait(); d.n.count(lease.ActionRelease) != 1 {
			t.Errorf("not released at the bound")
		}
		d.back()
	})
}

// An infinite lease was lost by a break while an earlier Acquire of its ID is in doubt. The Session
// releases it only when the work has stopped, or at a call of Release. SPEC H20c.
func TestReleaseOfAnInfiniteLeaseIsDeferred(t *testing.T) {
	infinite := session.Options{Duration: lease.Infinite}
	for what, c := range map[string]struct {
		o   session.Options
		end func(h *holder, back func()) error
	}{
		"the context is given back": {infinite, func(_ *holder, back func()) error { back(); return nil }},
		"Release":                   {infinite, func(h *holder, _ func()) error { return h.Release(context.Background()) }},
		"Close":                     {infinite, func(h *holder, _ func()) error { return h.Close(context.Background()) }},
		"292 years": { // on another clock, these years take longer than the longest Duration
			session.Options{Duration: lease.Infinite - 1, RenewInterval: 10 * time.Second, RequestTimeout: 5 * time.Second, StopWindow: time.Second},
			func(_ *holder, back func()) error { back(); return nil },
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, &c.o)
				n.meet(lease.ActionAcquire, late(time.Hour))
				h.unknown(t, errNet)
				h.acquire(t) // the Acquire uses the same ID
				_, back := h.WhileHeld(t.Context())
				defer back()
				n.breaks(t, 0)
				time.Sleep(time.Minute)
				h.lostOnce(t, lease.ErrBroken)
				time.Sleep(2 * time.Hour)
				if r := n.record(t); r.State != lease.Leased || n.count(lease.ActionRelease) != 0 {
					t.Fatalf("released while the work was running: %+v", r)
				}
				if err := butLoss(c.end(h, back)); err != nil {
					t.Error(err)
				}
				if synctest.Wait(); n.record(t).State != lease.Available {
					t.Errorf("the lease is still locked: %+v", n.record(t))
				}
			})
		})
	}
}

// HandOver, Release and Close of a held lease send their request at once, even if work is running.
// SPEC H20c.
func TestGivingUpWaitsForNoWork(t *testing.T) {
	for what, c := range map[string]struct {
		giveUp func(h, to *holder) error
		after  lease.State
	}{
		"Release":  {func(h, _ *holder) error { return h.Release(context.Background()) }, lease.Available},
		"Close":    {func(h, _ *holder) error { return h.Close(context.Background()) }, lease.Available},
		"HandOver": {func(h, to *holder) error { return h.HandOver(context.Background(), to.ID()) }, lease.Leased},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h, to := n.open(t, nil), n.open(t, nil)
				h.acquire(t)
				id := h.ID()
				held, back := h.WhileHeld(t.Context())
				defer back()
				began := time.Now()
				if err := c.giveUp(h, to); err != nil || time.Since(began) != 0 {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if r := n.record(t); r.State != c.after || r.State.Locked() && r.ID == id {
					t.Errorf("the record is %+v", r)
				}
				if !errors.Is(context.Cause(held), lease.ErrReleased) {
					t.Errorf("the cause is %v", context.Cause(held))
				}
			})
		})
	}
}

// An Acquire that finds an ID with a deferred release in force returns an error, and does not
// release the ID. Wait treats the lease as locked until it is released. SPEC H7b.
func TestAcquireBesideADeferredRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deferred(t, nil)
		_, ok, err := d.AcquireWithToken(t.Context())
		if ok || err == nil || !strings.Contains(err.Error(), "work has not stopped") {
			t.Errorf("acquire: %v, %v", ok, err)
		}
		d.inForce(t, true)
		waited := make(chan time.Time, 1)
		go func() {
			if err := d.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			waited <- time.Now()
		}()
		time.Sleep(10 * time.Second)
		d.inForce(t, true)
		if len(waited) > 0 {
			t.Error("Wait returned while the lease was locked")
		}
		d.back()
		if synctest.Wait(); len(waited) != 1 {
			t.Error("Wait did not return when the lease was released")
		}
		d.acquire(t)
	})
}

// A Session that watches the record has a context for the watch. The context of the watch does not
// count as work, so the Session sends the release after a loss at once. SPEC H20c.
func TestWatchDefersNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Watch: true})
		h.acquire(t)
		n.keep(lease.ActionRenew, failAnswer)
		time.Sleep(time.Until(until(t, h)))
		h.lostOnce(t, lease.ErrExpired)
		if n.record(t).State != lease.Available {
			t.Errorf("the lease is still locked: %+v", n.record(t))
		}
	})
}

// If work stops within its stop window, it has stopped before the work of another holder begins,
// whether or not the release arrives. If the last renewal was granted without an answer, even work
// that takes longer has stopped in time, because the release is deferred.
func TestNoOverlap(t *testing.T) {
	for _, c := range []struct {
		stops   time.Duration
		renewal fault
		overlap bool
	}{
		{5 * time.Second, failRequest, false},
		{5 * time.Second, failAnswer, false},
		{15 * time.Second, failAnswer, false}, // the lease was renewed, and is in force until the work stops
		{40 * time.Second, failRequest, true}, // only the guard can help
	} {
		t.Run(fmt.Sprint(c.stops), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(nil)
				first, second := over(lease.NewAuthority(store)), over(lease.NewAuthority(store))
				a, b := first.open(t, nil), second.open(t, &session.Options{Owner: "b"})
				var stopped, began time.Time
				done := make(chan error, 2)
				go func() {
					done <- session.Run(t.Context(), a, func(ctx context.Context, _ lease.Token) error {
						first.keep(lease.ActionRenew, c.renewal)
						<-ctx.Done()
						time.Sleep(c.stops)
						stopped = time.Now()
						return nil
					}, nil)
				}()
				synctest.Wait()
				go func() {
					done <- session.Run(t.Context(), b, func(context.Context, lease.Token) error {
						began = time.Now()
						return nil
					}, nil)
				}()
				<-done
				<-done
				if overlap := began.Before(stopped); overlap != c.overlap {
					t.Errorf("the second began %v after the first had stopped", began.Sub(stopped))
				}
			})
		})
	}
}

// An aheadClock is ahead of the system clock by a time that a test can change.
type aheadClock struct{ ahead *atomic.Int64 }

func (f aheadClock) Now() time.Time                         { return time.Now().Add(time.Duration(f.ahead.Load())) }
func (f aheadClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// If the Session notices a loss and the beginning of the stop window in one step, the cause of the
// contexts is the loss.
func TestLossAndStopWindowAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		clock := aheadClock{new(atomic.Int64)}
		h := n.open(t, &session.Options{Clock: clock})
		h.acquire(t)
		held, back := h.WhileHeld(t.Context())
		defer back()
		n.meet(lease.ActionRenew, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			n.breaks(t, 0)
			res, err := send(ctx)
			u, _ := h.Until()
			clock.ahead.Store(int64(time.Until(u) - 2*time.Second)) // the process was suspended; the stop window has begun
			return res, err
		})
		<-held.Done()
		if err := context.Cause(held); !errors.Is(err, lease.ErrBroken) || errors.Is(err, lease.ErrStopWindow) {
			t.Errorf("the cause is %v", err)
		}
	})
}
