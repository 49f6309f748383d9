package leasefault

import (
	"context"
	"testing"
)

// Detach applies f in a network that goes on when the caller has given up. The context of the
// caller ends the wait of the caller, but not f and not the request. Requests that are still under
// way when the test ends are cancelled and waited for. Detach(t, DelayRequest(d)) is a request that
// arrives late.
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

// Repeat delivers the request twice. The caller gets the answer to the first delivery. The second
// one goes through f and, as with [Detach], is not ended by the context of the caller. Repeat(t,
// DelayRequest(d)) is a copy of the request that arrives d later.
func Repeat(t testing.TB, f Fault) Fault {
	must(t != nil, "Repeat: t must not be nil")
	mustFaults("Repeat", f)
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
