package leasefault

import (
	"context"
	"sync"
)

// A Gate blocks calls until it is opened, so that a test can force an order of events. Its methods
// HoldRequest and HoldAnswer are faults:
//
//	gate := new(leasefault.Gate)
//	auth = leasefault.Script(auth,
//		leasefault.Nth(2, lease.ActionRenew, gate.HoldRequest), // the second renewal is overtaken
//		leasefault.Nth(1, lease.ActionRelease, leasefault.After(gate.Open))) // by the release
//
// If the context of a blocked call is done, the call returns the error of the context. With [Detach], the
// Gate blocks a request even after the context of the caller is done. An open Gate cannot be closed again.
// The zero Gate is closed and ready to use. A Gate is safe for concurrent use by multiple goroutines.
type Gate struct {
	making            sync.Once
	reached, open     chan struct{}
	arriving, opening sync.Once
}

// HoldRequest waits until the Gate is open, and then executes the request.
func (g *Gate) HoldRequest(ctx context.Context, c *Call) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	_ = c.Send(ctx)
	return nil
}

// HoldAnswer executes the request, and returns the answer when the Gate is open.
func (g *Gate) HoldAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return g.pass(ctx)
}

// Open opens the Gate. It may be called more than once.
func (g *Gate) Open() {
	g.begin()
	g.opening.Do(func() { close(g.open) })
}

// Reached returns a channel that is closed when the first call reaches the Gate, even if the Gate is open.
func (g *Gate) Reached() <-chan struct{} {
	g.begin()
	return g.reached
}

func (g *Gate) begin() {
	g.making.Do(func() { g.reached, g.open = make(chan struct{}), make(chan struct{}) })
}

func (g *Gate) pass(ctx context.Context) error {
	g.begin()
	g.arriving.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
