// Package retry decides whether a failed attempt to acquire a lease is repeated.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// A Series is a series of attempts.
type Series struct {
	Last      error     // of the last attempt
	permanent time.Time // since when all attempts have failed with permanent errors; zero if they have not
}

// Over notes the error of an attempt, nil if it has not failed. It reports whether there should be no other: none
// can succeed, or all have failed with permanent errors for 30 s.
func (s *Series) Over(now time.Time, err error) bool {
	switch s.Last = err; {
	case !errors.As(err, new(*lease.PermanentError)):
		s.permanent = time.Time{}
	case s.permanent.IsZero():
		s.permanent = now
	case now.Sub(s.permanent) >= 30*time.Second:
		return true
	}
	return Hopeless(err)
}

// Hopeless reports whether no attempt can succeed after one that has failed with err. A loss is not hopeless, because the
// next attempt begins another term.
func Hopeless(err error) bool {
	code := lease.CodeOf(err)
	badArgument := code >= lease.ErrAction && code <= lease.ErrOption
	return badArgument || code == lease.ErrClosed || code == lease.ErrEpochLimit || errors.Is(err, errors.ErrUnsupported)
}

// Stopped returns one error that matches ctx.Err(), context.Cause(ctx) and, unless it is nil, the error last.
func Stopped(ctx context.Context, last error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		err = cause
	} else {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if last != nil {
		err = fmt.Errorf("%w; the last attempt: %w", err, last)
	}
	return err
}
