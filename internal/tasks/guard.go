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
	// ErrGone is the error that Guard passes to the function answer if the function f exits its
	// goroutine.
	ErrGone = errors.New("the authority ended the goroutine of the request, so the outcome is not known")

	// ErrOverdue is the error that Guard passes to the function answer if the function f does not
	// return in time.
	ErrOverdue = errors.New("given up, because the authority does not return")
)

// Guard calls f with a context that lasts for d, and calls the function answer exactly once:
//
//   - If f returns, Guard passes the results of f to answer.
//   - If f exits its goroutine, Guard passes ErrGone to answer.
//   - If f is still running when d has passed since its context ended, Guard passes ErrOverdue to
//     answer, and true as givenUp. Guard then waits for f, and passes its late results to the
//     function returned.
//
// Guard returns after its last call of answer or returned has ended.
func Guard[T any](
	ctx context.Context, c lease.Clock, d time.Duration, f func(context.Context) (T, error),
	answer func(answer T, err error, givenUp bool), returned func(answer T, err error),
) {
	var (
		answered atomic.Bool
		gaveUp   = make(chan struct{})
		res      T
		err      = ErrGone
	)
	ctx, cancel := timing.WithTimeout(ctx, c, d)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // the second timer starts only now, because hardly any function needs it
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
	defer Finally(func() { // runs even if f exits the goroutine
		stop()
		close(done)
		cancel()
		if answered.CompareAndSwap(false, true) {
			answer(res, err, false)
			return
		}
		<-gaveUp
		returned(res, err)
	})
	res, err = f(ctx)
}
