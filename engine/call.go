package engine

import (
	"context"
	"errors"

	"github.com/fencedlease/lease/internal/tasks"
)

// Call calls f, and returns what f returns. If ctx ends first, Call returns ctx.Err() at once. A
// [lease.Store] must return soon after its context has ended. So use Call if it is possible that the client
// library does not return when the context ends.
//
// Call runs f on a goroutine of its own, which ends when f returns. If f returns after Call has returned, the
// result of f is lost. So f must not write to variables that the caller of Call reads afterwards. If the
// method Close of the store must wait for all running calls of f, then f must tell the store, in a deferred
// call, that f has ended.
//
// If f exits its goroutine, Call returns an error. A panic of f ends the process, so f must recover from
// panics that are expected.
func Call[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errExited}
		defer tasks.EvenOnExit(func() { answers <- a })
		value, err := f()
		a = answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

var errExited = errors.New("the client library ended the goroutine of the request, so the outcome is not known")
