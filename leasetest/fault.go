package leasetest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// ErrInjected is in the tree of every error that a [Fault] makes up itself.
var ErrInjected = errors.New("leasetest: injected fault")

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
// carried out. It is meant for [Load] and [lease.Read].
func Stale(ctx context.Context, c *Call) error {
	if c.last == nil {
		_ = c.Send(ctx)
		return nil
	}
	c.keep(c.last, nil)
	return nil
}

// Before calls f before the request is carried out, for what somebody else does just then:
// a break by a third party, the end of the caller's context.
func Before(f func()) Fault {
	return func(ctx context.Context, c *Call) error {
		f()
		_ = c.Send(ctx)
		return nil
	}
}

// After calls f once the request is carried out, before the caller gets the answer.
func After(f func()) Fault {
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		f()
		return nil
	}
}

// If is f whenever on reports true, and no fault otherwise: If(down.Load, LoseRequest), with
// an atomic.Bool, is a network that can be cut and mended.
func If(on func() bool, f Fault) Fault {
	return func(ctx context.Context, c *Call) error {
		if on() {
			return f(ctx, c)
		}
		_ = c.Send(ctx)
		return nil
	}
}

// Chain is the faults one inside the other, the first outermost: what it sends meets the
// second.
func Chain(faults ...Fault) Fault {
	if len(faults) == 0 {
		return If(func() bool { return false }, nil)
	}
	outer, inner := faults[0], faults[1:]
	if len(inner) == 0 {
		return outer
	}
	return func(ctx context.Context, c *Call) error {
		through := c.over(func(ctx context.Context) (any, error) {
			return c.over(c.do).meet(ctx, Chain(inner...))
		})
		answer, err := through.meet(ctx, outer)
		c.keep(answer, err)
		return nil
	}
}

// Detach is f in a network that carries on when the caller has given up: his context ends
// his waiting, but neither f nor the request. What has not ended with the test is ended, and
// waited for, by its clean-up. Detach(t, DelayRequest(d)) is a request that arrives late.
func Detach(t testing.TB, f Fault) Fault {
	return func(ctx context.Context, c *Call) error {
		done := make(chan error, 1)
		background(t, ctx, func(ctx context.Context) { done <- f(ctx, c) })
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Repeat is a network that delivers the request twice: the caller gets the answer to the
// first, and then it is carried out again through f, which belongs to the test as with
// [Detach]. Repeat(t, DelayRequest(d)) is a stale copy that comes d later.
func Repeat(t testing.TB, f Fault) Fault {
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		again := c.over(c.do)
		background(t, ctx, func(ctx context.Context) { _ = f(ctx, again) })
		return nil
	}
}

// background runs f in a goroutine that ends with the test.
func background(t testing.TB, ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// Random is, with the probability p for each call, one of the faults. What the n-th call of
// an operation meets depends on nothing but the seed, so the same seed replays.
func Random(seed uint64, p float64, faults ...Fault) Fault {
	var mu sync.Mutex
	count := map[string]uint64{}
	return func(ctx context.Context, c *Call) error {
		mu.Lock()
		count[c.Op]++
		n := count[c.Op]
		mu.Unlock()
		op := fnv.New64a()
		_, _ = op.Write([]byte(c.Op))
		r := rand.New(rand.NewPCG(seed, op.Sum64()+n))
		if len(faults) > 0 && r.Float64() < p {
			return faults[r.IntN(len(faults))](ctx, c)
		}
		_ = c.Send(ctx)
		return nil
	}
}
