package leasefault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrInjected is wrapped by every error that a [Fault] or a [WatchFault] of this package creates. The error
// of a context does not wrap ErrInjected.
var ErrInjected = errors.New("leasefault: injected fault")

// A Fault is called instead of a method of an authority or a store, and decides what happens to the call. To
// execute the method, the Fault calls [Call.Send], once or several times. If it never calls Send, the call is
// dropped.
//
// If the Fault returns nil, the caller gets the result of the last Send, even if that result is an error.
// Without a Send, the caller gets an error that wraps [ErrInjected]. If the Fault returns an error, the
// caller gets that error, and cannot tell from it whether the call was executed.
//
// A Fault must be safe for concurrent use by multiple goroutines, and return soon after ctx is done.
type Fault func(ctx context.Context, c *Call) error

// A Call is one call of an authority or a store. It is safe for concurrent use if its fields do not change.
type Call struct {
	Op   string // the name of a lease.Action, "load" or "swap"
	Name string // the name of the lease

	do   func(context.Context) (any, error)
	last any // the last successful answer to the same operation on the same lease, or nil

	mu     sync.Mutex
	sent   bool
	answer any
	err    error
}

// Send executes the call and returns its error. It may be called concurrently, even after the [Fault] has
// returned.
func (c *Call) Send(ctx context.Context) error {
	answer, err := c.do(ctx)
	c.keep(answer, err)
	return err
}

func (c *Call) keep(answer any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.answer, c.err = true, answer, err
}

// The method copyWith returns a copy of the call that has its own answer. When a fault calls the method Send
// of the copy, this method calls the function in the parameter do, and stores the answer of that function in
// the copy.
func (c *Call) copyWith(do func(context.Context) (any, error)) *Call {
	return &Call{Op: c.Op, Name: c.Name, do: do, last: c.last}
}

// executeWith applies the fault f to the call, and returns what the caller gets.
func (c *Call) executeWith(ctx context.Context, f Fault) (any, error) {
	if err := f(ctx, c); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sent {
		return nil, c.lost("request")
	}
	return c.answer, c.err
}

func (c *Call) lost(what string) error {
	return fmt.Errorf("%w: the %s of %s %q is lost", ErrInjected, what, c.Op, c.Name)
}

// blockUntilDone simulates a lost request or answer: it blocks until ctx is done, and returns its error.
func (c *Call) blockUntilDone(ctx context.Context, what string) error {
	if ctx.Done() == nil {
		return c.lost(what) // the caller would wait forever
	}
	<-ctx.Done()
	return ctx.Err()
}

// wait waits until d has passed, or until ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// LoseRequest drops the request, waits until ctx is done, and returns the error of ctx. The request is never
// executed. If ctx can never be done, LoseRequest returns an error at once.
func LoseRequest(ctx context.Context, c *Call) error { return c.blockUntilDone(ctx, "request") }

// LoseAnswer executes the request, drops the answer, waits until ctx is done, and returns the error of ctx.
// If ctx can never be done, LoseAnswer returns an error as soon as it has executed the request.
func LoseAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.blockUntilDone(ctx, "answer")
}

// FailRequest returns an error at once, and does not execute the request.
func FailRequest(_ context.Context, c *Call) error { return c.lost("request") }

// FailAnswer executes the request, drops the answer, and returns an error.
func FailAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.lost("answer")
}

// DelayRequest waits for d and then executes the request. If ctx ends during the delay, DelayRequest returns
// the error of ctx, and the request is never executed. To execute the request even then, use [Detach].
func DelayRequest(d time.Duration) Fault {
	must(d >= 0, "DelayRequest: d is %v, and must not be negative", d)
	return func(ctx context.Context, c *Call) error {
		if err := wait(ctx, d); err != nil {
			return err
		}
		_ = c.Send(ctx)
		return nil
	}
}

// DelayAnswer executes the request at once, and returns the answer after d. If ctx ends during the delay,
// DelayAnswer returns the error of ctx.
func DelayAnswer(d time.Duration) Fault {
	must(d >= 0, "DelayAnswer: d is %v, and must not be negative", d)
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		return wait(ctx, d)
	}
}

// Duplicate executes the request twice, and returns the second answer.
func Duplicate(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	_ = c.Send(ctx)
	return nil
}

// Stale returns an old answer, like a replica that lags behind: the answer to the last successful call of the
// same operation on the same lease. Without such a call, Stale executes the request. Use Stale for [Load] and
// [lease.ActionRead].
func Stale(ctx context.Context, c *Call) error {
	if c.last == nil {
		_ = c.Send(ctx)
		return nil
	}
	c.keep(c.last, nil)
	return nil
}
