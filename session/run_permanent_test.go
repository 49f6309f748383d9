package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
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
