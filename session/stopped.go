package session

import (
	"context"
	"errors"
	"reflect"

	"github.com/fencedlease/lease"
)

// Stopped reports whether err is the result of an orderly stop. A stop is orderly if ctx has ended, and if
// err contains neither a loss of the lease nor a failure. The parameter err is the error that [Run],
// [TryRun], [AcquireWait] or slots.Run has returned. The parameter ctx is the context that was passed to the
// same call.
//
// If ctx has ended, Stopped returns true for a nil error. It also returns true if err consists only of errors
// from this list: the error of ctx, the cause of ctx, [lease.ErrHeldByOther] and [lease.ErrReleased].
// Therefore a process that was still waiting for the lease when ctx ended has stopped in an orderly way, too.
// If the release of the lease failed, Stopped returns false. If the last attempt to acquire the lease failed,
// Stopped also returns false.
func Stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && !errors.Is(err, lease.ErrLost) && consistsOf(err, ctx.Err(), context.Cause(ctx), lease.ErrHeldByOther, lease.ErrReleased)
}

func consistsOf(err error, expected ...error) bool {
	if err == nil {
		return true
	}
	for _, e := range expected {
		if reflect.TypeOf(e).Comparable() && err == e {
			return true
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range err.Unwrap() {
			if !consistsOf(part, expected...) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return err.Unwrap() != nil && consistsOf(err.Unwrap(), expected...)
	}
	return false
}

// AfterLoss reports whether err matches [lease.ErrLost] or fencing.ErrStale. A stale token counts as a loss,
// because a guard can reject a write before the Session has noticed that it lost the lease. Pass AfterLoss as
// [RunOptions.Again] to let [Run] contend again after a loss.
func AfterLoss(err error) bool {
	return errors.Is(err, lease.ErrLost)
}
