package session_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Work that calls Progress in time keeps its lease. Work that stops calling it, and ignores its context,
// loses the lease: the cause, the error of Run, the hooks and the log say why. Nothing is renewed any
// more, and another holder takes over within one Duration.
func TestProgressTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, duration = 10 * time.Second, 30 * time.Second
		var out bytes.Buffer
		var ended []session.EndInfo
		n := overMemory()
		a := n.open(t, &session.Options{Duration: duration, Logger: slog.New(slog.NewTextHandler(&out, nil)),
			Trace: &session.Trace{Ended: func(e session.EndInfo) { ended = append(ended, e) }}})
		b := n.open(t, &session.Options{Duration: duration})
		var last, over time.Time
		err := session.Run(t.Context(), a, func(ctx context.Context, _ lease.Token) error {
			for range 100 {
				time.Sleep(limit - time.Millisecond)
				session.Progress(ctx)
				last = time.Now()
			}
			if ctx.Err() != nil {
				t.Fatal(context.Cause(ctx))
			}
			<-ctx.Done()
			over = time.Now()
			if cause := context.Cause(ctx); !errors.Is(cause, lease.ErrNoProgress) || !errors.Is(cause, lease.ErrLost) {
				t.Errorf("the cause is %v", cause)
			}
			if over.Sub(last) != limit || a.CheckAlive() {
				t.Errorf("the context ended after %v; alive: %v", over.Sub(last), a.CheckAlive())
			}
			renewals := n.count(lease.ActionRenew)
			_, err := session.AcquireWait(t.Context(), b, nil)
			if took := time.Since(over); err != nil || took > duration {
				t.Errorf("another holder has the lease after %v: %v", took, err)
			}
			if n.count(lease.ActionRenew) != renewals || n.count(lease.ActionRelease) > 0 {
				t.Error("the stalled holder has renewed or released")
			}
			return nil
		}, &session.RunOptions{ProgressTimeout: limit})
		if lost := a.lostOnce(t, lease.ErrNoProgress); !errors.Is(err, lost) || !session.AfterLoss(err) || !strings.Contains(err.Error(), "not called for 10s") {
			t.Errorf("Run returns %v", err)
		}
		if len(ended) != 1 || ended[0].Reason != lease.ErrNoProgress {
			t.Errorf("the hook Ended: %v", ended)
		}
		for _, text := range []string{"reason=no-progress", `msg="lease: term ended"`} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("no %s in\n%s", text, &out)
			}
		}
	})
}

// The limit holds until the function has returned, even if its context has ended. Progress counts for
// each Run or TryRun around it, and for none that has no ProgressTimeout.
func TestProgressOfRuns(t *testing.T) {
	session.Progress(t.Context()) // does nothing
	synctest.Test(t, func(t *testing.T) {
		outer, inner := overMemory().open(t, nil), overMemory().open(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := session.TryRun(ctx, outer, func(ctx context.Context, _ lease.Token) error {
			err := session.Run(ctx, inner, func(ctx context.Context, _ lease.Token) error {
				for range 10 {
					time.Sleep(50 * time.Second)
					session.Progress(ctx)
				}
				return ctx.Err()
			}, &session.RunOptions{ProgressTimeout: time.Hour})
			if err != nil || !outer.CheckAlive() {
				t.Errorf("%v; alive: %v", err, outer.CheckAlive())
			}
			cancel()
			time.Sleep(2 * time.Minute)
			if outer.CheckAlive() {
				t.Error("work that hangs after its context has ended keeps the lease")
			}
			return nil
		}, &session.RunOptions{ProgressTimeout: time.Minute})
		if err != nil { // the caller has ended the context first
			t.Errorf("TryRun returns %v", err)
		}
		outer.lostOnce(t, lease.ErrNoProgress)
		if lost := inner.losses(); len(lost) != 0 {
			t.Errorf("lost: %v", lost)
		}
	})
}
