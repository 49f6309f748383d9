package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

var errTable = errors.New("no such table")

// The fault failWith fails every request at once with an error.
func failWith(err error) fault {
	return func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
		return lease.Result{}, err
	}
}

func idle(context.Context, lease.Token) error { return nil }

// If attempts fail with permanent errors for 30 s, Run and AcquireWait return the last one, even if
// the text of the error is different each time. They never return
// because of an error that is not marked as permanent.
func TestPermanentErrorEndsContending(t *testing.T) {
	for name, contend := range contenders {
		for _, c := range []struct {
			err       error
			permanent bool
		}{
			{lease.Permanent(errTable), true},
			{fmt.Errorf("load: %w", lease.Permanent(errTable)), true},
			{errTable, false},
		} {
			t.Run(fmt.Sprint(name, " ", c.permanent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, nil)
					n.keep(lease.ActionAcquire, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
						return failWith(fmt.Errorf("request %d: %w", n.count(lease.ActionAcquire), c.err))(ctx, send)
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began := time.Now()
					err := contend(ctx, h, nil)
					took := time.Since(began)
					if !errors.Is(err, errTable) || errors.Is(err, context.DeadlineExceeded) == c.permanent {
						t.Errorf("%v", err)
					}
					if c.permanent && (took < 30*time.Second || took > 40*time.Second) {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// TryRun tries once, so it returns a permanent error at once.
func TestTryRunOfAPermanentError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.keep(lease.ActionAcquire, failWith(lease.Permanent(errTable)))
		began := time.Now()
		ran, err := session.TryRun(t.Context(), h, idle, nil)
		if ran || !errors.Is(err, errTable) || !errors.As(err, new(*lease.PermanentError)) {
			t.Errorf("%v, %v", ran, err)
		}
		if tries := n.count(lease.ActionAcquire); tries != 1 || time.Since(began) != 0 {
			t.Errorf("%d tries in %v", tries, time.Since(began))
		}
	})
}

// While attempts fail, the pause doubles, up to 10 s or up to AcquireInterval, whichever is longer.
// A refusal resets the pause.
func TestPauseBetweenTries(t *testing.T) {
	pauses := func(t *testing.T, o *session.RunOptions, f func(try int) fault, d time.Duration) (list []time.Duration) {
		n := overMemory()
		h := n.open(t, nil)
		n.keep(lease.ActionAcquire, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			return f(n.count(lease.ActionAcquire))(ctx, send)
		})
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		_ = session.Run(ctx, h, idle, o)
		sent := n.requests(lease.ActionAcquire)
		for i := range sent[1:] {
			list = append(list, sent[i+1].at.Sub(sent[i].at))
		}
		return list
	}
	expect := func(t *testing.T, got []time.Duration, want ...time.Duration) {
		t.Helper()
		if len(got) < len(want) {
			t.Fatalf("%d pauses: %v", len(got), got)
		}
		for i, most := range want {
			if got[i] > most || got[i] < most/2 {
				t.Errorf("pause %d is %v, want %v, shortened by up to half", i, got[i], most)
			}
		}
	}
	const s = time.Second
	synctest.Test(t, func(t *testing.T) {
		got := pauses(t, nil, func(int) fault { return failRequest }, 5*time.Minute)
		expect(t, got, s, 2*s, 4*s, 8*s, 10*s, 10*s, 10*s, 10*s)
	})
	synctest.Test(t, func(t *testing.T) {
		got := pauses(t, &session.RunOptions{AcquireInterval: 15 * s}, func(int) fault { return failRequest }, 5*time.Minute)
		expect(t, got, 15*s, 15*s, 15*s, 15*s)
	})
	synctest.Test(t, func(t *testing.T) {
		got := pauses(t, nil, func(try int) fault {
			switch {
			case try == 5:
				return refuse(lease.ErrHeldByOther, lease.Result{})
			case try%2 == 0:
				return failWith(errTable)
			}
			return failRequest
		}, 5*time.Minute)
		expect(t, got, s, 2*s, 4*s, 8*s)
		expect(t, got[5:], s, 2*s, 4*s, 8*s)
	})
}
