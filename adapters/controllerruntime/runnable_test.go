package controllerruntime_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/controllerruntime"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

var silent = slog.New(slog.DiscardHandler)

func newRunnable(t testing.TB, a lease.Authority, f func(context.Context, lease.Token) error) *controllerruntime.Runnable {
	t.Helper()
	s, err := session.New(a, name, &session.Options{Duration: duration, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	r, err := controllerruntime.NewRunnable(s, f, &session.RunOptions{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The answer to a renewal comes 9 s late, and then the connection to the authority is cut. An elector
// counts the time from the answer, so two electors lead if the lock believes it. A Lock does not, and the
// function of a Runnable has stopped before another contender leads.
func TestLateAnswer(t *testing.T) {
	// overlap runs two contenders, of which the first has the bad connection to the authority, and
	// returns the longest time for which both led.
	overlap := func(t *testing.T, start func(ctx context.Context, a lease.Authority, identity string, began, ended func())) (longest time.Duration) {
		for shift := range 20 { // each shift changes the times at which the requests of the contenders meet
			synctest.Test(t, func(t *testing.T) {
				a := memory.New(nil).Authority()
				bad := leasefault.Script(a, leasefault.Nth(5, lease.ActionRenew, leasefault.DelayAnswer(9*time.Second)),
					leasefault.From(6, lease.ActionRenew, leasefault.LoseRequest), leasefault.Always(lease.ActionRelease, leasefault.LoseRequest))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, ended := make(chan time.Time, 1), make(chan time.Time, 1)
				done := make(chan struct{}, 2)
				go func() {
					start(ctx, bad, "first", func() {}, func() { ended <- time.Now() })
					done <- struct{}{}
				}()
				synctest.Wait()
				time.Sleep(time.Duration(shift) * 100 * time.Millisecond)
				go func() {
					start(ctx, a, "second", func() { began <- time.Now() }, func() {})
					done <- struct{}{}
				}()
				b, e := <-began, <-ended
				longest = max(longest, e.Sub(b))
				cancel()
				<-done
				<-done
			})
		}
		return longest
	}
	// Without the two LockOptions, a Lock cannot know how long an elector leads after an answer.
	const none = 1
	var lead [2]time.Duration
	for i, o := range []*controllerruntime.LockOptions{{RenewDeadline: none, RetryPeriod: none}, nil} {
		lead[i] = overlap(t, func(ctx context.Context, a lease.Authority, identity string, began, ended func()) {
			lock, err := controllerruntime.NewLock(a, name, identity, o)
			if err != nil {
				t.Fatal(err)
			}
			elect(ctx, t, lock, false, began, ended)
		})
	}
	runnable := overlap(t, func(ctx context.Context, a lease.Authority, _ string, began, ended func()) {
		first := true
		_ = newRunnable(t, a, func(ctx context.Context, _ lease.Token) error {
			began()
			<-ctx.Done()
			if first {
				ended()
			}
			first = false
			return context.Cause(ctx)
		}).Start(ctx)
	})
	t.Logf("two lead for %v with a Lock that believes late answers, for %v with a Lock, and for %v with a Runnable", lead[0], lead[1], runnable)
	if lead[0] <= 0 {
		t.Error("the schedule does not show the weakness of an elector")
	}
	if lead[1] > 0 || runnable > 0 {
		t.Errorf("two lead for %v with a Lock, and for %v with a Runnable", lead[1], runnable)
	}
}

// A Runnable leads, and its health checks report it. It ends without an error when its manager ends. It
// contends again after a loss, and ends after another error of its function.
func TestRunnable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(nil).Authority()
		ctx, cancel := context.WithCancel(t.Context())
		failure := errors.New("the work fails")
		tokens := make(chan lease.Token)
		proceed := make(chan struct{})
		var fails bool
		var r *controllerruntime.Runnable
		r = newRunnable(t, a, func(ctx context.Context, tok lease.Token) error {
			tokens <- tok
			<-ctx.Done()
			<-proceed
			if fails {
				return failure
			}
			return context.Cause(ctx)
		})
		if r.NeedLeaderElection() || r.Readyz(nil) == nil || r.Healthz(nil) != nil {
			t.Errorf("before it starts: %v, %v", r.Readyz(nil), r.Healthz(nil))
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		before := <-tokens
		if r.Readyz(nil) != nil || r.Healthz(nil) != nil {
			t.Errorf("while it leads: %v, %v", r.Readyz(nil), r.Healthz(nil))
		}
		if _, err := lease.Break(ctx, a, name, lease.Grace(0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(duration) // until the Runnable has noticed the loss
		if r.Readyz(nil) == nil || r.Healthz(nil) == nil {
			t.Error("the lease is lost, the function does not return, and the checks find nothing")
		}
		proceed <- struct{}{}
		if after := <-tokens; after.Compare(before) <= 0 {
			t.Errorf("token %s after %s", after, before)
		}
		cancel()
		synctest.Wait()
		if r.Healthz(nil) != nil && inspect(t, a).State.Locked() {
			t.Errorf("the function is stopping under its lease: %v", r.Healthz(nil))
		}
		proceed <- struct{}{}
		if err := <-ended; err != nil || inspect(t, a).State.Locked() {
			t.Errorf("it ends with %v, and leaves %v", err, inspect(t, a))
		}

		fails = true
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		r = newRunnable(t, a, func(context.Context, lease.Token) error { return failure })
		if err := r.Start(ctx); !errors.Is(err, failure) {
			t.Errorf("a function that fails: %v", err)
		}
	})
}

func TestNewRunnable(t *testing.T) {
	s, err := session.New(memory.New(nil).Authority(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	f := func(context.Context, lease.Token) error { return nil }
	expectField(t, second(controllerruntime.NewRunnable(nil, f, nil)), "NewRunnable.l", lease.ErrOption)
	expectField(t, second(controllerruntime.NewRunnable(s, nil, nil)), "NewRunnable.f", lease.ErrOption)
	for range 20 { // the order of the checks does not change
		expectField(t, second(controllerruntime.NewRunnable(nil, nil, nil)), "NewRunnable.l", lease.ErrOption)
	}
}

// If the function ends its goroutine, Start still closes the Session.
func TestStartClosesAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := session.New(memory.New(nil).Authority(), "leader", &session.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := controllerruntime.NewRunnable(s, func(context.Context, lease.Token) error {
			runtime.Goexit()
			return nil
		}, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = r.Start(t.Context())
		}()
		<-done
		if ok, err := s.Acquire(t.Context()); ok || !errors.Is(err, lease.ErrClosed) {
			t.Errorf("after Start, Acquire returned %v, %v", ok, err)
		}
	})
}
