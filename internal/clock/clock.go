// Package clock provides timers and timeouts on any lease.Clock. With the [System] clock they use package
// time and need no goroutine.
package clock

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// System is the clock of package time.
type System struct{}

func (System) Now() time.Time                         { return time.Now() }
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// After returns a channel that receives the time after d. For lease.Infinite the channel is nil.
func After(c lease.Clock, d time.Duration) <-chan time.Time {
	if d == lease.Infinite {
		return nil
	}
	return c.After(d)
}

// Sleep waits for d. If ctx is done first, Sleep returns ctx.Err(). If d is not positive, it makes no timer: one that is
// due at once has crashed the race detector in a bubble of testing/synctest.
func Sleep(ctx context.Context, c lease.Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-After(c, d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callAfter calls f after a time, unless it is stopped before.
func callAfter(after <-chan time.Time, stopped <-chan struct{}, f func()) {
	select {
	case <-after:
		f()
	case <-stopped:
	}
}

// WithTimeout is context.WithTimeout on a Clock. After the timeout, the Cause of the context is
// context.DeadlineExceeded. Its Err is context.Canceled with a clock other than [System], because
// context.WithCancelCause cannot set it. The caller must call cancel.
func WithTimeout(ctx context.Context, c lease.Clock, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	if _, ok := c.(System); ok {
		return context.WithTimeout(ctx, d)
	}
	ctx, end := context.WithCancelCause(ctx)
	after := After(c, d)
	go callAfter(after, ctx.Done(), func() { end(context.DeadlineExceeded) })
	return ctx, func() { end(context.Canceled) }
}
