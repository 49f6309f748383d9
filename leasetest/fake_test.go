package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// SPEC H1, H2, H5, H13, H15, H16, H17, H20, H21: a Fake keeps the contract of every lease.
func TestFakeConforms(t *testing.T) {
	var leases sync.Map // by name: one *Fake, and its rivals
	newFake := func(t testing.TB, h leasetest.Holder) lease.Lease {
		// A Fake has no options, so session.New checks the options of the suite.
		if _, err := session.New(lease.NewAuthority(nothing{}), h.Name, &session.Options{Owner: h.Owner, Duration: h.Duration}); err != nil {
			t.Fatal(err)
		}
		first, loaded := leases.LoadOrStore(h.Name, &leasetest.Fake{Name: h.Name, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { leases.Delete(h.Name) })
		if loaded {
			return first.(*leasetest.Fake).Rival()
		}
		return first.(*leasetest.Fake)
	}
	leasetest.TestLease(t, newFake, &leasetest.Options{
		Bubble: true,
		Can:    leasetest.Everything &^ (leasetest.CanUseAuthority | leasetest.CanUseClock | leasetest.CanTakeOver),
		Lease: leasetest.LeaseHooks{Revoke: func(_ testing.TB, name string, period time.Duration) {
			f, _ := leases.Load(name)
			f.(*leasetest.Fake).Break(period)
		}},
	})
}

type nothing struct{ lease.Store }

func TestFakeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f leasetest.Fake
		failure := errors.New("no answer")
		f.Next(false, nil)
		f.Next(false, failure)
		f.NextAfter(time.Second, true, nil)
		for i, want := range []struct {
			ok   bool
			err  error
			took time.Duration
		}{{false, nil, 0}, {false, failure, 0}, {true, nil, time.Second}, {true, nil, 0}} {
			began := time.Now()
			ok, err := f.Acquire(t.Context())
			if took := time.Since(began); ok != want.ok || !errors.Is(err, want.err) || took != want.took {
				t.Errorf("Acquire %d: %v, %v after %v; want %v, %v after %v", i+1, ok, err, took, want.ok, want.err, want.took)
			}
			if f.CheckAlive() != want.ok {
				t.Errorf("CheckAlive is %v after Acquire %d", !want.ok, i+1)
			}
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"Acquire", "CheckAlive", "Acquire", "CheckAlive", "Acquire", "CheckAlive", "Acquire", "CheckAlive", "Release"}; !slices.Equal(f.Calls(), want) {
			t.Errorf("the calls are %v, want %v", f.Calls(), want)
		}
	})
}

// The methods of a Fake return what those of a Session return whose requests take a second each, so a
// program that uses a result in a wrong way fails with both.
func TestFakeReturnsWhatASessionReturns(t *testing.T) {
	type holder interface {
		lease.Waiter
		WhileHeld(context.Context) (context.Context, context.CancelFunc)
	}
	failure := errors.New("no answer")
	live := context.Background()
	done, cancel := context.WithCancel(live)
	cancel()
	acquire := func(l holder) { _, _ = l.Acquire(live) }
	release := func(l holder) { _ = l.Release(live) }
	for _, c := range []struct {
		name  string
		fails lease.Action // the first request with this action fails
		do    func(l holder) error
		want  error
	}{
		{"release", 0, func(l holder) error {
			acquire(l)
			return l.Release(live)
		}, nil},
		{"release under a done context", 0, func(l holder) error {
			acquire(l)
			return l.Release(done)
		}, context.Canceled},
		{"release under a context of WhileHeld", 0, func(l holder) error {
			acquire(l)
			held, giveBack := l.WhileHeld(live)
			defer giveBack()
			return l.Release(held)
		}, nil},
		{"release nothing", 0, func(l holder) error { return l.Release(done) }, nil},
		{"release after an acquire that failed", lease.ActionAcquire, func(l holder) error {
			acquire(l)
			return l.Release(done)
		}, context.Canceled},
		{"release that fails", lease.ActionRelease, func(l holder) error {
			release(l) // releases nothing, so it does not fail
			acquire(l)
			err := l.Release(live)
			if l.CheckAlive() {
				return errors.New("still held")
			}
			return err
		}, failure},
		{"acquire that fails", lease.ActionAcquire, func(l holder) error {
			_, err := l.Acquire(live)
			return err
		}, failure},
		{"acquire under a done context", 0, func(l holder) error {
			_, err := l.Acquire(done)
			return err
		}, context.Canceled},
		{"acquire what is held, under a done context", 0, func(l holder) error {
			acquire(l)
			if ok, err := l.Acquire(done); err != nil || !ok {
				return fmt.Errorf("%v, %w", ok, err)
			}
			return nil
		}, nil},
		{"wait under a done context", 0, func(l holder) error { return l.Wait(done) }, context.Canceled},
		{"acquire whose context ends meanwhile", 0, func(l holder) error {
			ctx, cancel := context.WithTimeout(live, time.Second/2)
			defer cancel()
			_, err := l.Acquire(ctx)
			return endedHalfway(ctx, err)
		}, context.DeadlineExceeded},
		{"acquire that is released meanwhile", 0, func(l holder) error {
			ctx, cancel := context.WithTimeout(live, time.Second/2)
			defer cancel()
			context.AfterFunc(ctx, func() { release(l) })
			_, err := l.Acquire(live)
			return endedHalfway(ctx, err)
		}, lease.ErrReleased},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := leasefault.DelayRequest(time.Second)
				lines := []leasefault.Line[lease.Action]{
					leasefault.Always(lease.ActionAcquire, slow), leasefault.Always(lease.ActionRelease, slow),
				}
				f := leasetest.Fake{Name: "job"}
				switch c.fails {
				case lease.ActionAcquire:
					f.NextAfter(time.Second, false, failure)
				case lease.ActionRelease:
					f.NextRelease(failure)
				}
				if c.fails != 0 {
					lines = append(lines, leasefault.Nth(1, c.fails, func(context.Context, *leasefault.Call) error { return failure }))
				}
				f.NextAfter(time.Second, true, nil)
				s, err := session.New(leasefault.Script(memory.New(nil).Authority(), lines...), f.Name, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())
				want, got := c.do(s), c.do(&f)
				if !errors.Is(want, c.want) {
					t.Errorf("the Session returns %v, want %v", want, c.want)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) || !errors.Is(got, c.want) {
					t.Errorf("the Fake returns %v, and the Session returns %v", got, want)
				}
				time.Sleep(time.Minute) // until the requests of the Session have ended
				if f.CheckAlive() != s.CheckAlive() {
					t.Errorf("a minute later, CheckAlive of the Fake is %v, and of the Session %v", f.CheckAlive(), s.CheckAlive())
				}
			})
		})
	}
}

// endedHalfway returns err, unless the call has not ended together with ctx.
func endedHalfway(ctx context.Context, err error) error {
	if deadline, _ := ctx.Deadline(); !deadline.Equal(time.Now()) {
		return fmt.Errorf("it ended %v after its time", time.Since(deadline))
	}
	return err
}

// The results of NextRelease and NextReleaseAfter are used in their order. A Release that has nothing to release,
// or whose context is done, uses none. Even a slow Release frees the lease at once. It ends with its context, but
// not with one that it has ended.
func TestFakeReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f leasetest.Fake
		rival := f.Rival()
		failure, unchanged := errors.New("no answer"), &lease.OpError{Op: "release", Name: "job", Err: lease.ErrConflict}
		f.NextRelease(failure)
		f.NextRelease(nil)
		for _, err := range []error{nil, failure, nil} {
			f.NextReleaseAfter(time.Minute, err)
		}
		f.NextRelease(unchanged)
		live := func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }
		for _, c := range []struct {
			what    string
			acquire bool // before the Release
			ctx     func() (context.Context, context.CancelFunc)
			took    time.Duration
			want    error
		}{
			{"under a done context", true, func() (context.Context, context.CancelFunc) {
				ctx, cancel := live()
				cancel()
				return ctx, cancel
			}, 0, context.Canceled},
			{"failure", false, live, 0, failure},
			{"success", false, live, 0, nil},
			{"of nothing", false, live, 0, nil},
			{"slow, under a context that it ends", true, func() (context.Context, context.CancelFunc) { return f.WhileHeld(t.Context()) }, time.Minute, nil},
			{"slow failure", true, live, time.Minute, failure},
			{"timeout", true, func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, time.Second, context.DeadlineExceeded},
			{"an error that stays as it is", true, live, 0, unchanged},
		} {
			if c.acquire {
				_, _ = f.Acquire(t.Context())
			}
			ctx, cancel := c.ctx()
			time.AfterFunc(1, func() {
				if f.CheckAlive() {
					t.Errorf("%s: the lease is held during the Release", c.what)
				}
			})
			began := time.Now()
			err := f.Release(ctx)
			if took := time.Since(began); took != c.took || !errors.Is(err, c.want) || f.CheckAlive() {
				t.Errorf("%s: Release returns %v after %v, want %v after %v; held: %v", c.what, err, took, c.want, c.took, f.CheckAlive())
			}
			if c.want == unchanged && err != unchanged {
				t.Errorf("%s: %v", c.what, err)
			}
			cancel()
		}
		if ok, err := rival.Acquire(t.Context()); !ok {
			t.Errorf("the Acquire of the rival: %v, %v", ok, err)
		}
	})
}

// Each way in which a lease ends is seen by handlers, contexts and CheckAlive.
func TestFakeEnds(t *testing.T) {
	for _, c := range []struct {
		what   string
		end    func(f *leasetest.Fake) bool
		cause  lease.Code // of the context
		lost   lease.Code // 0: OnLost is not called
		breaks int32      // how often OnBreaking is called
		held   bool       // a second later
	}{
		{"lose", func(f *leasetest.Fake) bool { return f.Lose(lease.ErrExpired) }, lease.ErrExpired, lease.ErrExpired, 0, false},
		{"lose to another", func(f *leasetest.Fake) bool { return f.Lose(lease.ErrIDMismatch) }, lease.ErrIDMismatch, lease.ErrIDMismatch, 0, false},
		{"end work", func(f *leasetest.Fake) bool { return f.EndWork() }, lease.ErrStopWindow, 0, 0, true},
		{"break now", func(f *leasetest.Fake) bool { return f.Break(0) }, lease.ErrBroken, lease.ErrBroken, 0, false},
		{"break", func(f *leasetest.Fake) bool { return f.Break(time.Second / 2) }, lease.ErrStopWindow, lease.ErrBroken, 1, false},
		{"break slowly", func(f *leasetest.Fake) bool { return f.Break(time.Minute) }, 0, 0, 1, true},
		{"shorten a break", func(f *leasetest.Fake) bool { return f.Break(time.Minute) && f.Break(time.Second) }, lease.ErrStopWindow, lease.ErrBroken, 2, false},
		{"lengthen a break", func(f *leasetest.Fake) bool { return f.Break(time.Second) && f.Break(time.Minute) }, lease.ErrStopWindow, lease.ErrBroken, 1, false},
		{"release", func(f *leasetest.Fake) bool { return f.Release(context.Background()) == nil }, lease.ErrReleased, 0, 0, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f leasetest.Fake
				if c.lost != 0 && c.end(&f) || f.CheckAlive() {
					t.Errorf("the lease was held before Acquire")
				}
				var lost []error
				var breaks atomic.Int32
				f.OnLost(func(err error) { lost = append(lost, err) })
				f.OnBreaking(func(time.Time) { breaks.Add(1) })
				tok, _, _ := f.AcquireWithToken(t.Context())
				held, done := f.WhileHeld(t.Context())
				defer done()
				if !c.end(&f) {
					t.Errorf("the lease was not held")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if f.CheckAlive() != c.held {
					t.Errorf("CheckAlive is %v, want %v", !c.held, c.held)
				}
				if got := lease.CodeOf(context.Cause(held)); got != c.cause {
					t.Errorf("the cause of the context is %v, want %v", got, c.cause)
				}
				again, giveBack := f.WhileHeld(t.Context())
				if begins := again.Err() == nil; begins != (c.cause == 0) {
					t.Errorf("new work begins: %v", begins)
				}
				giveBack()
				switch {
				case c.lost == 0 && len(lost) > 0:
					t.Errorf("OnLost was called with %v, want no call", lost)
				case c.lost != 0 && (len(lost) != 1 || lease.CodeOf(lost[0]) != c.lost || !errors.Is(lost[0], lease.ErrLost)):
					t.Errorf("OnLost was called with %v, want %v", lost, c.lost)
				}
				if e := (*lease.LostError)(nil); len(lost) > 0 && (!errors.As(lost[0], &e) || e.Token != tok) {
					t.Errorf("the loss is %v, and the token was %q", lost[0], tok)
				}
				if n := breaks.Load(); n != c.breaks {
					t.Errorf("OnBreaking was called %d times, want %d", n, c.breaks)
				}
			})
		})
	}
}

func TestFakeMistakesPanic(t *testing.T) {
	var f leasetest.Fake
	for text, do := range map[string]func(){
		"Fake.Next: err":              func() { f.Next(true, errors.New("x")) },
		"Fake.NextAfter: d":           func() { f.NextAfter(-1, true, nil) },
		"Fake.Break: period":          func() { f.Break(-1) },
		`Fake.Lose: reason is "lost"`: func() { new(leasetest.Fake).Lose(lease.ErrLost) },
		// A Session reports no such loss.
		`Fake.Lose: reason is "stop-window"`: func() { new(leasetest.Fake).Lose(lease.ErrStopWindow) },
		`Fake.Lose: reason is "released"`:    func() { new(leasetest.Fake).Lose(lease.ErrReleased) },
		`Fake.Lose: reason is "Code(0)"`:     func() { new(leasetest.Fake).Lose(0) },
		"Fake.OnLost: handler":               func() { new(leasetest.Fake).OnLost(nil) },
		"Fake.OnBreaking: handler":           func() { new(leasetest.Fake).OnBreaking(nil) },
	} {
		if said := panics(do); !strings.Contains(said, text) {
			t.Errorf("it panics with %q, want %q", said, text)
		}
	}
}

// A break ends the contexts one StopWindow before the lease, like that of a Session.
func TestFakeStopWindow(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{0: 15 * time.Second, 3 * time.Second: 17 * time.Second, -1: 20 * time.Second, time.Minute: 0} {
		synctest.Test(t, func(t *testing.T) {
			f := leasetest.Fake{StopWindow: window}
			_, _ = f.Acquire(t.Context())
			held, giveBack := f.WhileHeld(t.Context())
			defer giveBack()
			began := time.Now()
			f.Break(20 * time.Second)
			<-held.Done()
			if took := time.Since(began); took != want {
				t.Errorf("StopWindow %v: the context ends %v after the break, want %v", window, took, want)
			}
			if window >= 0 && !f.CheckAlive() {
				t.Errorf("StopWindow %v: the lease is lost at the beginning of the stop window", window)
			}
			time.Sleep(20*time.Second - time.Since(began))
			if f.CheckAlive() {
				t.Errorf("StopWindow %v: the lease is held after the end of the break", window)
			}
		})
	}
}

// A Wait for a rival that does not release is not silent.
func TestFakeWarnsOfALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := leasetest.Fake{Name: "job", Logger: slog.New(slog.NewTextHandler(&log, nil))}
		rival := f.Rival()
		_, _ = rival.Acquire(t.Context())
		for _, wait := range []time.Duration{time.Second, time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_ = f.Wait(ctx)
			cancel()
			synctest.Wait()
			if got := strings.Count(log.String(), "lease=job"); got != int(wait/time.Minute) {
				t.Errorf("a Wait of %v logs %d warnings:\n%s", wait, got, log.String())
			}
		}
	})
}
