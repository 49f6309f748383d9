package session

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// system is package time.
type system struct{}

func (system) Now() time.Time                         { return time.Now() }
func (system) After(d time.Duration) <-chan time.Time { return time.After(d) }

// An alarm rings once at the time that it was last set for. It may ring once too often, when it is
// set or unset just as it rings.
type alarm struct {
	clock lease.Clock
	ring  func()
	at    time.Time     // zero: not set, or it has rung
	timer *time.Timer   // with the system clock
	stop  chan struct{} // with any other, while set: ends the goroutine that waits
}

// set sets the alarm for d after now, or unsets it if d is Infinite. It must not be called at the
// same time twice. The function that it returns, if any, must be called soon after: a Clock's
// After may wait, so that no lock may be held.
func (a *alarm) set(now time.Time, d time.Duration) (start func()) {
	at := now.Add(d)
	switch {
	case d == lease.Infinite:
		a.unset()
		return nil
	case !a.at.IsZero() && a.at.Equal(at):
		return nil
	}
	a.unset()
	a.at = at
	if _, ok := a.clock.(system); ok {
		if a.timer == nil {
			a.timer = time.AfterFunc(d, a.ring)
		} else {
			a.timer.Reset(d)
		}
		return nil
	}
	stop := make(chan struct{})
	a.stop = stop
	return func() {
		after := a.clock.After(d)
		go func() {
			select {
			case <-after:
				a.ring()
			case <-stop:
			}
		}()
	}
}

func (a *alarm) unset() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
}

// withTimeout is context.WithTimeout on a Clock.
func withTimeout(ctx context.Context, c lease.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := c.(system); ok {
		return context.WithTimeout(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	after := c.After(d)
	go func() {
		select {
		case <-after:
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// sleep waits for d or until the context is done, and then returns its error.
func sleep(ctx context.Context, c lease.Clock, d time.Duration) error {
	select {
	case <-c.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
