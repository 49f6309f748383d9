package leasefault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrInjected is in the tree of every error that a [Fault] makes up itself.
var ErrInjected = errors.New("leasefault: injected fault")

// A Fault is what happens to a call on its way to an authority or a store and back. It
// carries the call out by [Call.Send], as often as it likes, or not at all. If it returns
// nil, the caller gets the answer to what was sent last, refusals and errors included; an
// error it returns is all that the caller gets, so that he cannot know what became of the
// call.
//
// A Fault may be met by several calls at once. Whatever it waits for ends with the context.
type Fault func(ctx context.Context, c *Call) error

// A Call is one call of an authority or a store.
type Call struct {
	Op   string // the action of an authority, or "load" or "swap"
	Name string // of the lease

	do   func(context.Context) (any, error)
	last any // the answer to the call of this operation and name before; nil: none

	mu     sync.Mutex
	sent   bool
	answer any
	err    error
}

// Send carries the call out and returns the error of its answer. It may be used by several
// goroutines, and after the Fault has returned.
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

// over is the same call, carried out by do, with an answer of its own.
func (c *Call) over(do func(context.Context) (any, error)) *Call {
	return &Call{Op: c.Op, Name: c.Name, do: do, last: c.last}
}

// meet lets the call meet f and returns what the caller gets.
func (c *Call) meet(ctx context.Context, f Fault) (any, error) {
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

// silence waits for an answer that will not come.
func (c *Call) silence(ctx context.Context, what string) error {
	if ctx.Done() == nil {
		return c.lost(what) // he would wait forever
	}
	<-ctx.Done()
	return ctx.Err()
}

// wait waits for d, or until the context is done.
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

// LoseRequest is a network that drops the request: it is never carried out, and the caller
// waits until his context is done. A caller whose context cannot end gets an error at once.
func LoseRequest(ctx context.Context, c *Call) error { return c.silence(ctx, "request") }

// LoseAnswer is a network that drops the answer: the request is carried out, and the caller
// waits until his context is done. A caller whose context cannot end gets an error at once.
func LoseAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.silence(ctx, "answer")
}

// FailRequest is an error without commit: the caller gets it at once.
func FailRequest(_ context.Context, c *Call) error { return c.lost("request") }

// FailAnswer is an error with commit: the request is carried out, and the caller gets an
// error in the place of the answer.
func FailAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.lost("answer")
}

// DelayRequest delays the request: it has its effect d later. If the context ends first, it
// is never carried out; see [Detach].
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

// DelayAnswer delays the answer: the caller gets it d after the effect, or, if his context
// ends first, its error.
func DelayAnswer(d time.Duration) Fault {
	must(d >= 0, "DelayAnswer: d is %v, and must not be negative", d)
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		return wait(ctx, d)
	}
}

// Duplicate carries the request out twice in a row; the caller gets the second answer.
func Duplicate(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	_ = c.Send(ctx)
	return nil
}

// Stale is a read that was answered by something which lags behind: it gets the answer that
// the operation last got under this name, and asks nobody. The first call under a name is
// carried out. It is meant for [Load] and [lease.ActionRead].
func Stale(ctx context.Context, c *Call) error {
	if c.last == nil {
		_ = c.Send(ctx)
		return nil
	}
	c.keep(c.last, nil)
	return nil
}
