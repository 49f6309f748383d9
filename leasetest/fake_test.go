package leasetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// SPEC H1, H2, H5, H13, H15, H16, H17, H20, H21: a Fake keeps the contract of every lease.
func TestFakeConforms(t *testing.T) {
	var leases sync.Map // by name: one *Fake, and its rivals
	newFake := func(t testing.TB, h leasetest.Holder) lease.Lease {
		// A Fake has no options. What the suite gives it is checked as a Session would.
		if _, err := session.New(lease.NewAuthority(nothing{}), h.Name, &session.Options{Owner: h.Owner, Duration: h.Duration}); err != nil {
			t.Fatal(err)
		}
		first, loaded := leases.LoadOrStore(h.Name, &leasetest.Fake{Name: h.Name})
		t.Cleanup(func() { leases.Delete(h.Name) })
		if loaded {
			return first.(*leasetest.Fake).Rival()
		}
		return first.(*leasetest.Fake)
	}
	leasetest.TestLease(t, newFake, &leasetest.Options{
		Bubble: true,
		Can:    leasetest.Everything &^ (leasetest.CanUseAuthority | leasetest.CanUseClock | leasetest.CanTakeOver),
		Revoke: func(_ testing.TB, name string, period time.Duration) {
			f, _ := leases.Load(name)
			f.(*leasetest.Fake).Break(period)
		},
	})
}

// nothing is a store that is never asked.
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
			if took := time.Since(began); ok != want.ok || err != want.err || took != want.took {
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

// A slow Acquire ends with its context, and with Release. It is never granted later.
func TestFakeSlowAcquireEnds(t *testing.T) {
	for what, want := range map[string]error{"context": context.DeadlineExceeded, "release": lease.ErrReleased} {
		synctest.Test(t, func(t *testing.T) {
			var f leasetest.Fake
			f.NextAfter(time.Minute, true, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if what == "context" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			} else {
				time.AfterFunc(time.Second, func() { _ = f.Release(ctx) })
			}
			defer cancel()
			began := time.Now()
			ok, err := f.Acquire(ctx)
			if took := time.Since(began); ok || !errors.Is(err, want) || took != time.Second {
				t.Errorf("%s: Acquire: %v, %v after %v", what, ok, err, took)
			}
			time.Sleep(time.Hour)
			if f.CheckAlive() {
				t.Errorf("%s: the lease is held an hour later", what)
			}
		})
	}
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
		{"break", func(f *leasetest.Fake) bool { return f.Break(time.Second / 2) }, lease.ErrBroken, lease.ErrBroken, 1, false},
		{"break slowly", func(f *leasetest.Fake) bool { return f.Break(time.Minute) }, 0, 0, 1, true},
		{"shorten a break", func(f *leasetest.Fake) bool { return f.Break(time.Minute) && f.Break(time.Second) }, lease.ErrBroken, lease.ErrBroken, 2, false},
		{"lengthen a break", func(f *leasetest.Fake) bool { return f.Break(time.Second) && f.Break(time.Minute) }, lease.ErrBroken, lease.ErrBroken, 1, false},
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
				if c.lost == 0 && len(lost) != 0 || c.lost != 0 && (len(lost) != 1 || lease.CodeOf(lost[0]) != c.lost || !errors.Is(lost[0], lease.ErrLost)) {
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

// A Fake works outside of a bubble as well.
func TestFakeInRealTime(t *testing.T) {
	var f leasetest.Fake
	rival := f.Rival()
	lost := make(chan error, 1)
	f.OnLost(func(err error) { lost <- err })
	f.NextAfter(time.Millisecond, true, nil)
	if ok, err := f.Acquire(t.Context()); !ok {
		t.Fatal(ok, err)
	}
	if ok, err := rival.Acquire(t.Context()); ok || err != nil {
		t.Errorf("the rival's Acquire: %v, %v", ok, err)
	}
	f.Break(time.Millisecond)
	if err := rival.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if ok, err := rival.Acquire(t.Context()); !ok {
		t.Errorf("the rival's Acquire after the break: %v, %v", ok, err)
	}
	if err := <-lost; !errors.Is(err, lease.ErrBroken) {
		t.Errorf("it is lost by %v", err)
	}
}

func TestFakeMistakesPanic(t *testing.T) {
	var f leasetest.Fake
	for text, do := range map[string]func(){
		"Fake.Next: err":          func() { f.Next(true, errors.New("x")) },
		"Fake.NextAfter: d":       func() { f.NextAfter(-1, true, nil) },
		"Fake.Break: period":      func() { f.Break(-1) },
		"handler must not be nil": func() { new(leasetest.Fake).OnLost(nil) },
	} {
		if said := panics(do); !strings.Contains(said, text) {
			t.Errorf("it panics with %q, want %q", said, text)
		}
	}
}
