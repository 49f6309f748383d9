package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

var errShutdown = errors.New("the operator shuts it down")

// In every case, Run returns an error of one line that matches exactly the wanted errors. If Run
// has nothing to add to the error of the function, Run returns the error of the function unchanged.
// SPEC N1, N3.
func TestWhatRunReturns(t *testing.T) {
	const s = time.Second
	type setting struct {
		n     *network
		h     *holder
		other *holder // another holder of the same lease
		stop  context.CancelCauseFunc
	}
	untilDone := func(err error) func(setting, context.Context) error {
		return func(_ setting, ctx context.Context) error { <-ctx.Done(); return err }
	}
	returns := func(err error) func(setting, context.Context) error {
		return func(setting, context.Context) error { return err }
	}
	stopIn := func(d time.Duration) func(x setting) {
		return func(x setting) { time.AfterFunc(d, func() { x.stop(errShutdown) }) }
	}
	all := []error{errWork, errNet, errShutdown, context.Canceled, context.DeadlineExceeded, lease.ErrLost,
		lease.ErrStopWindow, lease.ErrExpired, lease.ErrBroken, lease.ErrTakenOver, lease.ErrHeldByOther,
		lease.ErrReleased, lease.ErrEpochLimit, lease.ErrNotHeld}
	for _, c := range []struct {
		name   string
		before func(x setting) // the test calls before, and then Run
		f      func(x setting, ctx context.Context) error
		again  bool // whether Again returns true after the first term
		want   []error
	}{
		{name: "nil", f: returns(nil)},
		{name: "an error", f: returns(errWork), want: []error{errWork}},
		{name: "stopped at work", before: stopIn(s), f: untilDone(nil)},
		{name: "stopped at work, with an error", before: stopIn(s), f: untilDone(errWork), want: []error{errWork}},
		{name: "stopped at work, with the context's error", before: stopIn(s), f: func(_ setting, ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, want: []error{context.Canceled}},
		{name: "stopped before", before: func(x setting) { x.stop(errShutdown) }, want: []error{context.Canceled, errShutdown}},
		{name: "stopped without a cause before", before: func(x setting) { x.stop(nil) }, want: []error{context.Canceled}},
		{name: "stopped while another has the lease", before: func(x setting) {
			x.other.acquire(t)
			stopIn(s)(x)
		}, want: []error{context.Canceled, errShutdown, lease.ErrHeldByOther}},
		{name: "stopped while every try fails", before: func(x setting) {
			x.n.keep(lease.ActionAcquire, failRequest)
			stopIn(10 * s)(x)
		}, want: []error{context.Canceled, errShutdown, errNet}},
		{name: "stopped in a try", before: func(x setting) {
			x.n.keep(lease.ActionAcquire, x.n.hang)
			stopIn(s)(x)
		}, want: []error{context.Canceled, errShutdown}},
		{name: "stopped in the pause after a term", f: returns(errWork), again: true,
			before: stopIn(100 * time.Millisecond), want: []error{context.Canceled, errShutdown}},
		{name: "hopeless after a term", f: func(x setting, _ context.Context) error {
			x.n.keep(lease.ActionAcquire, refuse(lease.ErrEpochLimit, lease.Result{}))
			return errWork
		}, again: true, want: []error{lease.ErrEpochLimit}},
		{name: "the stop window, and stopped in time", f: func(x setting, ctx context.Context) error {
			x.n.keep(lease.ActionRenew, failRequest)
			<-ctx.Done()
			return nil
		}, want: []error{lease.ErrLost, lease.ErrStopWindow, errNet}},
		{name: "the stop window, with an error", f: func(x setting, ctx context.Context) error {
			x.n.keep(lease.ActionRenew, failRequest)
			<-ctx.Done()
			return errWork
		}, want: []error{lease.ErrLost, lease.ErrStopWindow, errNet, errWork}},
		{name: "the stop window, with its cause", f: func(x setting, ctx context.Context) error {
			x.n.keep(lease.ActionRenew, failRequest)
			<-ctx.Done()
			return context.Cause(ctx)
		}, want: []error{lease.ErrLost, lease.ErrStopWindow, errNet}},
		{name: "broken", f: func(x setting, ctx context.Context) error {
			x.n.breaks(t, 0)
			<-ctx.Done()
			return nil
		}, want: []error{lease.ErrLost, lease.ErrBroken}},
		{name: "broken, and then stopped", f: func(x setting, ctx context.Context) error {
			x.n.breaks(t, 0)
			<-ctx.Done()
			x.stop(errShutdown)
			return nil
		}, want: []error{lease.ErrLost, lease.ErrBroken}},
		{name: "stopped, and then broken", f: func(x setting, ctx context.Context) error {
			x.stop(errShutdown)
			<-ctx.Done()
			x.n.breaks(t, 0)
			time.Sleep(time.Minute)
			return nil
		}},
		{name: "released by the function", f: func(x setting, ctx context.Context) error {
			return x.h.Release(ctx)
		}},
		{name: "a release that fails", f: func(x setting, _ context.Context) error {
			x.n.keep(lease.ActionRelease, failRequest)
			return nil
		}, want: []error{errNet}},
		{name: "an error, and a release that fails", f: func(x setting, _ context.Context) error {
			x.n.keep(lease.ActionRelease, failRequest)
			return errWork
		}, want: []error{errWork, errNet}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				x := setting{n, n.open(t, nil), n.open(t, nil), stop}
				if c.before != nil {
					c.before(x)
				}
				o := &session.RunOptions{AcquireInterval: s}
				if c.again {
					o.Again = func(error) bool { return true }
				}
				err := session.Run(ctx, x.h, func(ctx context.Context, _ lease.Token) error {
					if c.f == nil {
						t.Fatal("called")
					}
					return c.f(x, ctx)
				}, o)
				for _, e := range all {
					if got, want := errors.Is(err, e), slices.Contains(c.want, e); got != want {
						t.Errorf("errors.Is(err, %q) is %v", e, got)
					}
				}
				isWork := len(c.want) == 1 && c.want[0] == errWork
				if len(c.want) == 0 && err != nil || isWork && err != errWork {
					t.Errorf("an error was added: %v", err)
				}
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("of several lines: %q", err)
				}
				x.h.alive(t, false)
			})
		})
	}
}

// attempts are the calls that acquire the lease.
var attempts = map[string]func(context.Context, *holder) error{
	"Run":     func(ctx context.Context, h *holder) error { return session.Run(ctx, h, idle, nil) },
	"TryRun":  func(ctx context.Context, h *holder) error { _, err := session.TryRun(ctx, h, idle, nil); return err },
	"Acquire": func(ctx context.Context, h *holder) error { _, err := h.Acquire(ctx); return err },
}

// If an acquire and the release after it fail with the same error, the error appears once. SPEC N3.
func TestReleaseThatFailsLikeItsAcquire(t *testing.T) {
	for _, what := range []string{"Run", "TryRun"} {
		for _, c := range []struct {
			release fault
			want    int
		}{{failRequest, 1}, {refuse(lease.ErrConflict, lease.Result{}), 2}} {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				n.keep(lease.ActionAcquire, failRequest)
				n.keep(lease.ActionRelease, c.release)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := attempts[what](ctx, n.open(t, nil))
				if !errors.Is(err, errNet) || strings.Count(err.Error(), name) != c.want {
					t.Errorf("%s: %v; want %d errors of requests", what, err, c.want)
				}
				n.heal()
			})
		}
	}
}

// An acquire that the store did not send leaves nothing to release, so a store that has no room for another lease
// gets no releases, either. SPEC N3.
func TestUnsentAcquireIsNotReleased(t *testing.T) {
	for what, attempt := range attempts {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			n.keep(lease.ActionAcquire, refuse(lease.ErrUnsent, lease.Result{}))
			h := n.open(t, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := attempt(ctx, h); !errors.Is(err, lease.ErrUnsent) {
				t.Errorf("%s: %v", what, err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("%s: release: %v", what, err)
			}
			if k := n.count(lease.ActionAcquire); (what == "Run") != (k > 5) {
				t.Errorf("%s: %d attempts in a minute", what, k)
			}
			if k := n.count(lease.ActionRelease); k > 0 {
				t.Errorf("%s: %d releases", what, k)
			}
		})
	}
}
