package session_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/session"
)

// A second call of Run or TryRun does not share the term of the first call. SPEC N1.
func TestRunOfABusySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := overMemory().open(t, nil)
		never := func(context.Context, lease.Token) error {
			t.Error("a second function ran")
			return nil
		}
		err := session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
			field := (*lease.FieldError)(nil)
			if err := session.Run(ctx, h, never, nil); !errors.As(err, &field) || field.Field != "Run.l" || !errors.Is(err, lease.ErrOption) || !strings.Contains(err.Error(), h.Name()) {
				t.Errorf("a second Run returns %v", err)
			}
			if ran, err := session.TryRun(ctx, h, never, nil); ran || err != nil {
				t.Errorf("TryRun returns %v, %v", ran, err)
			}
			if tok, err := session.AcquireWait(ctx, h, nil); tok != "" || !errors.As(err, &field) || field.Field != "AcquireWait.l" {
				t.Errorf("AcquireWait returns %q, %v", tok, err)
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if ran, err := session.TryRun(ended, h, never, nil); ran || !errors.Is(err, context.Canceled) {
				t.Errorf("TryRun returns %v, %v under a context that is done", ran, err)
			}
			time.Sleep(time.Hour)
			return ctx.Err() // nil, because nothing has released the lease
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
}

// A countingClock counts the timers of more than an hour.
type countingClock struct {
	clock.System
	long atomic.Int64
}

func (c *countingClock) After(d time.Duration) <-chan time.Time {
	if d > time.Hour {
		c.long.Add(1)
	}
	return c.System.After(d)
}

// By default, Run uses the Logger and the Clock of its Session. The Logger gets the records of both
// in the order of the events.
func TestRunUsesTheOptionsOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		clock := new(countingClock)
		n := overMemory()
		a := n.open(t, nil)
		b := n.open(t, &session.Options{Clock: clock, Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		a.acquire(t)
		time.AfterFunc(10*time.Second, func() { a.release(t) })
		o := session.RunOptions{WakeJitter: 2 * time.Hour}
		if err := session.Run(t.Context(), b, func(context.Context, lease.Token) error { return nil }, &o); err != nil {
			t.Fatal(err)
		}
		if clock.long.Load() != 1 {
			t.Errorf("Run waited %d times by the Clock of its Session", clock.long.Load())
		}
		if n := strings.Count(out.String(), " owner="+b.Owner()); n < 4 {
			t.Errorf("%d records have the owner, in\n%s", n, out.String())
		}
		last := -1
		for _, text := range []string{"waiting for another holder", "acquired", "term began", "released", "term ended"} {
			i := strings.Index(out.String(), "lease: "+text)
			if i <= last {
				t.Errorf("%q is missing or too early in\n%s", text, out.String())
			}
			last = i
		}
	})
}
