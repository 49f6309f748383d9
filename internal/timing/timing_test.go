package timing_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timing"
)

// own is a clock that is not the System clock.
type own struct{ timing.System }

var clocks = map[string]lease.Clock{"system": timing.System{}, "own": own{}}

// each runs a test with each clock, in a bubble.
func each(t *testing.T, f func(t *testing.T, c lease.Clock)) {
	for name, c := range clocks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, c) })
		})
	}
}

func TestAfter(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		began := time.Now()
		<-timing.After(c, time.Second)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		if timing.After(c, lease.Infinite) != nil {
			t.Error("a channel for never")
		}
	})
}

func TestSleep(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		began := time.Now()
		if err := timing.Sleep(t.Context(), c, time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := timing.Sleep(ctx, c, lease.Infinite); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestWithTimeout(t *testing.T) {
	each(t, func(t *testing.T, c lease.Clock) {
		ctx, cancel := timing.WithTimeout(t.Context(), c, time.Second)
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != context.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("it ended after %v because of %v", time.Since(began), cause)
		}
		ctx, cancel = timing.WithTimeout(t.Context(), c, time.Second)
		cancel()
		if err := ctx.Err(); err != context.Canceled {
			t.Errorf("it ended because of %v", err)
		}
	})
}
