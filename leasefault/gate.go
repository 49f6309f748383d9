package leasefault

import (
	"context"
	"sync"
)

// A Gate holds calls until it is opened, to force an order of events. Its methods HoldRequest,
// HoldAnswer, OpenBefore and OpenAfter are faults:
//
//	gate := leasefault.NewGate()
//	auth = leasefault.Script(auth,
//		leasefault.Nth(2, lease.ActionRenew, gate.HoldRequest), // the second renewal is overtaken
//		leasefault.Nth(1, lease.ActionRelease, gate.OpenAfter)) // by the release
//
// A call whose context ends while it is held returns the error of the context, unless it is inside
// a [Detach]. A Gate stays open once it was opened. The zero Gate is closed and ready to use.
type Gate struct {
	making            sync.Once
	reached, open     chan struct{}
	arriving, opening sync.Once
}

// NewGate returns a Gate that is closed.
func NewGate() *Gate { return new(Gate) }

// HoldRequest carries the request out once the gate is open.
func (g *Gate) HoldRequest(ctx context.Context, c *Call) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	_ = c.Send(ctx)
	return nil
}

// HoldAnswer carries the request out, and returns the answer once the gate is open.
func (g *Gate) HoldAnswer(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	return g.pass(ctx)
}

// OpenBefore opens the gate, and then carries the request out.
func (g *Gate) OpenBefore(ctx context.Context, c *Call) error {
	g.Open()
	_ = c.Send(ctx)
	return nil
}

// OpenAfter carries the request out, and then opens the gate.
func (g *Gate) OpenAfter(ctx context.Context, c *Call) error {
	_ = c.Send(ctx)
	g.Open()
	return nil
}

// Open opens the gate. It may be called more than once.
func (g *Gate) Open() {
	g.begin()
	g.opening.Do(func() { close(g.open) })
}

// Reached returns a channel that is closed when the first call reaches the gate.
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
