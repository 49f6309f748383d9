package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/session"
)

// Stopped is true for a leader and for a standby that are stopped, and false after a failure.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		leader, standby := n.open(t, nil), n.open(t, nil)
		cause := errors.New("SIGTERM")
		ctx, stop := context.WithCancelCause(t.Context())
		errs := make(chan error, 2)
		go func() {
			errs <- session.Run(ctx, leader, func(ctx context.Context, _ lease.Token) error { <-ctx.Done(); return ctx.Err() }, nil)
		}()
		synctest.Wait()
		go func() { errs <- session.Run(ctx, standby, idle, nil) }()
		time.Sleep(time.Minute)
		if session.Stopped(ctx, nil) || session.Stopped(ctx, context.Canceled) {
			t.Error("stopped before the context has ended")
		}
		stop(cause)
		for range 2 {
			if err := <-errs; !session.Stopped(ctx, err) {
				t.Errorf("not stopped: %v", err)
			}
		}
		lost := &lease.LostError{Reason: lease.ErrExpired, Err: context.Canceled}
		for _, c := range []struct {
			err       error
			stopped   bool
			afterLoss bool
		}{
			{nil, true, false}, {cause, true, false}, {fmt.Errorf("post: %w", context.Canceled), true, false},
			{lease.ErrReleased, true, false}, {errNet, false, false}, {lost, false, true},
			{fmt.Errorf("%w; %w", context.Canceled, errNet), false, false},
			{errors.Join(context.Canceled, lost), false, true},
			{&fencing.StaleError{}, false, true},
		} {
			if session.Stopped(ctx, c.err) != c.stopped || session.AfterLoss(c.err) != c.afterLoss {
				t.Errorf("%v: stopped %v, after a loss %v", c.err, session.Stopped(ctx, c.err), session.AfterLoss(c.err))
			}
		}
	})
}
