// Package timing has timers and timeouts on any lease.Clock. With the [System] clock they are those
// of package time, and cost no goroutine.
package timing

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// System is the clock of package time.
type System struct{}

func (System) Now() time.Time                         { return time.Now() }
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// After returns a channel that gets the time after d. For lease.Infinite it is nil.
func After(c lease.Clock, d time.Duration) <-chan time.Time {
	if d == lease.Infinite {
		return nil
	}
	return c.After(d)
}

// Sleep waits for d or until ctx is done, and then returns its error.
func Sleep(ctx context.Context, c lease.Clock, d time.Duration) error {
	select {
	case <-After(c, d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AfterFunc calls f after d, on a goroutine of its own, unless stop is called before. If f is just
// being called stop does not wait for it. It must be called, at most once, to free what AfterFunc
// needs.
func AfterFunc(c lease.Clock, d time.Duration, f func()) (stop func()) {
	if _, ok := c.(System); ok {
		t := time.AfterFunc(d, f)
		return func() { t.Stop() }
	}
	after, stopped := After(c, d), make(chan struct{})
	go callAfter(after, stopped, f)
	return func() { close(stopped) }
}

func callAfter(after <-chan time.Time, stopped <-chan struct{}, f func()) {
	select {
	case <-after:
		f()
	case <-stopped:
	}
}

// WithTimeout is context.WithTimeout on a Clock. A context cannot say by itself that the time of a
// Clock is up: its Err is then context.Canceled, and its Cause is context.DeadlineExceeded. Cancel
// must be called.
func WithTimeout(ctx context.Context, c lease.Clock, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	if _, ok := c.(System); ok {
		return context.WithTimeout(ctx, d)
	}
	ctx, end := context.WithCancelCause(ctx)
	after := After(c, d)
	go callAfter(after, ctx.Done(), func() { end(context.DeadlineExceeded) })
	return ctx, func() { end(context.Canceled) }
}
