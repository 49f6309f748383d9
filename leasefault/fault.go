package leasefault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrInjected is in the tree of every error that a [Fault] of this package returns by itself.
var ErrInjected = errors.New("leasefault: injected fault")

// A Fault decides what happens to one call of an authority or a store. It carries the call out with
// [Call.Send], once, several times or not at all.
//
// If the Fault returns nil, the caller gets the answer to the last Send, even if that is a refusal
// or an error. If the Fault returns an error, the caller gets only that error, and does not know
// whether the call was carried out.
//
// A Fault must be safe for use by several goroutines at once, and must return soon after the
// context ends.
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

// Send carries the call out and returns the error of its answer. Several goroutines may call Send,
// also after the Fault has returned.
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

// LoseRequest drops the request. It is never carried out, and the caller waits until its context
// ends. A caller whose context cannot end gets an error at once.
func LoseRequest(ctx context.Context, c *Call) error { return c.silence(ctx, "request") }

// LoseAnswer carries the request out and drops the answer. The caller waits until its context ends.
// A caller whose context cannot end gets an error at once.
func LoseAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.silence(ctx, "answer")
}

// FailRequest returns an error at once. The request is not carried out.
func FailRequest(_ context.Context, c *Call) error { return c.lost("request") }

// FailAnswer carries the request out, and returns an error in place of the answer.
func FailAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return c.lost("answer")
}

// DelayRequest carries the request out d later. If the context ends first, the request is never
// carried out, unless the Fault is inside a [Detach].
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

// DelayAnswer carries the request out at once and returns the answer d later. If the context ends
// first, it returns the error of the context.
func DelayAnswer(d time.Duration) Fault {
	must(d >= 0, "DelayAnswer: d is %v, and must not be negative", d)
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		return wait(ctx, d)
	}
}

// Duplicate carries the request out twice in a row, and returns the second answer.
func Duplicate(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	_ = c.Send(ctx)
	return nil
}

// Stale returns the answer that the last call of the same operation got under the same name, as a
// replica does that lags behind. It carries out only the first call under a name. It is meant for
// [Load] and [lease.ActionRead].
func Stale(ctx context.Context, c *Call) error {
	if c.last == nil {
		_ = c.Send(ctx)
		return nil
	}
	c.keep(c.last, nil)
	return nil
}
