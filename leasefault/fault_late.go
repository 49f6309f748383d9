package leasefault

import (
	"context"
	"testing"
)

// Detach returns a Fault that applies f to a request, but gives the request its own context. Therefore the
// request continues even after the caller has stopped waiting. If the context of the caller ends, the caller
// gets the error of that context at once. When the test ends, a cleanup function cancels all detached
// requests that are still running, and waits for them. For example, Detach(t, DelayRequest(d)) simulates a
// request that arrives late.
func Detach(t testing.TB, f Fault) Fault {
	must(t != nil, "Detach: t must not be nil")
	mustFaults("Detach", f)
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

// Repeat returns a Fault that sends the request, returns the answer to the caller, and then sends the request
// again. It applies the fault f only to the second request, which continues even if the context of the caller
// ends, as with [Detach]. For example, Repeat(t, DelayRequest(d)) sends the request again when d has passed
// since the first answer.
func Repeat(t testing.TB, f Fault) Fault {
	must(t != nil, "Repeat: t must not be nil")
	mustFaults("Repeat", f)
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		again := c.copyWith(c.do)
		background(t, ctx, func(ctx context.Context) { _ = f(ctx, again) })
		return nil
	}
}

// The function background runs f in a goroutine. The context of f does not end when ctx ends. When the test
// ends, a cleanup function cancels the context of f and waits until f has returned.
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
