package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timing"
)

var (
	// ErrGone is the answer of a function that has ended its goroutine.
	ErrGone = errors.New("the authority ended the goroutine of the request, so the outcome is not known")

	// ErrOverdue is the answer of a function that was given up. It matches
	// context.DeadlineExceeded.
	ErrOverdue = fmt.Errorf("given up, because the authority does not return: %w", context.DeadlineExceeded)
)

// Guard calls f under a context that lasts for d, and calls answer once: with what f returns, with
// ErrGone if f ends its goroutine, or, with givenUp set, with ErrOverdue if f has not returned d
// after its context ended. Then it calls returned after that, as soon as f returns. What f answers
// by then is dropped. Guard returns after the last of these calls.
//
// An error of f that matches context.Canceled is replaced by the cause of the context's end.
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
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause // the time of a Clock is up
	}
}
