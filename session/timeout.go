package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A timeoutError reports that a time limit of the Session or of Run has ended a request. It does not match
// context.DeadlineExceeded or context.Canceled, because a program that ignores these errors would then ignore
// a lost lease too. It matches all other errors that its field err matches.
type timeoutError struct {
	option string // the option that set the time limit
	limit  time.Duration
	err    error
}

// If err was returned because ctx has ended, timedOut wraps err in a timeoutError. The parameter ctx is the
// context of a request. The time limit of the request must be the only reason why ctx can end.
func timedOut(ctx context.Context, option string, limit time.Duration, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	if op, ok := err.(*lease.OpError); ok { // keep the operation and the name at the front of the text
		return &lease.OpError{Op: op.Op, Name: op.Name, Err: &timeoutError{option, limit, op.Err}}
	}
	return &timeoutError{option, limit, err}
}

func (e *timeoutError) Error() string {
	limit := e.limit
	if limit > 10*time.Millisecond {
		limit = limit.Round(time.Millisecond) // a third of a Duration has many digits
	}
	text := fmt.Sprintf("no answer within %v (%s)", limit, e.option)
	more := e.err.Error()
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		more = strings.TrimSuffix(strings.TrimSuffix(more, end.Error()), ": ")
	}
	if more != "" {
		text += ": " + more
	}
	return text
}

func (e *timeoutError) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e *timeoutError) As(target any) bool { return errors.As(e.err, target) }
