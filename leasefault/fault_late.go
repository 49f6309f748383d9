package leasefault

import (
	"context"
	"testing"
)

// Detach is f in a network that carries on when the caller has given up: his context ends
// his waiting, but neither f nor the request. What has not ended with the test is ended, and
// waited for, by its clean-up. Detach(t, DelayRequest(d)) is a request that arrives late.
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

// Repeat is a network that delivers the request twice: the caller gets the answer to the
// first, and then it is carried out again through f, which belongs to the test as with
// [Detach]. Repeat(t, DelayRequest(d)) is a stale copy that comes d later.
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
