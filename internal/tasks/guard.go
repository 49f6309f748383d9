package tasks

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timing"
)

var (
	// ErrGone is the error that Guard passes on if the function exited its goroutine.
	ErrGone = errors.New("the authority ended the goroutine of the request, so the outcome is not known")

	// ErrOverdue is the error that Guard passes on if the function did not return in time.
	ErrOverdue = errors.New("given up, because the authority does not return")
)

// Guard calls f with a context that lasts for d, and calls answer exactly once:
//
//   - If f returns, answer gets the results of f.
//   - If f exits its goroutine, answer gets ErrGone.
//   - If f is still running when d has passed since its context ended, answer gets ErrOverdue and
//     givenUp is set. Guard then waits for f, drops its results, and calls returned.
//
// Guard returns after the last of these calls.
func Guard[T any](
	ctx context.Context, c lease.Clock, d time.Duration, f func(context.Context) (T, error),
	answer func(answer T, err error, givenUp bool), returned func(),
) {
	var (
		answered atomic.Bool
		gaveUp   = make(chan struct{})
		res      T
		err      = ErrGone
	)
	ctx, cancel := timing.WithTimeout(ctx, c, d)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // only now: hardly any function needs the second timer
		select {
		case <-timing.After(c, d):
		case <-done:
			return
		}
		if answered.CompareAndSwap(false, true) {
			defer Finally(func() { close(gaveUp) })
			var none T
			answer(none, ErrOverdue, true)
		}
	})
	defer Finally(func() { // also if f has ended the goroutine
		stop()
		close(done)
		cancel()
		if answered.CompareAndSwap(false, true) {
			answer(res, err, false)
			return
		}
		<-gaveUp
		returned()
	})
	res, err = f(ctx)
}
