package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
)

// The means by which the suite brings a holder into trouble, each by the first way that
// there is: see the abilities that follow from others.

// cut cuts a party off its authority. It needs cutting.
func (p *party) cut() (mend func()) {
	p.w.history.Printf("== %s is cut off", p.who)
	if p.w.truth == nil {
		return p.w.Options.Cut(p.w.TB, p.Lease)
	}
	p.wire.down.Store(true)
	return func() { p.wire.down.Store(false) }
}

// stall keeps a party from renewing: it is cut off, or does not run. It needs stalling.
func (p *party) stall() (resume func()) {
	if p.w.Lacks&cutting == 0 {
		return p.cut()
	}
	p.w.history.Printf("== %s pauses", p.who)
	p.clock.Pause()
	return p.clock.Resume
}

// lose brings about the loss of what a party holds, within the duration of the lease: it is
// cut off, its clock is set ahead, or a third party breaks it. It needs losing.
func (p *party) lose() (mend func()) {
	switch {
	case p.w.Lacks&cutting == 0:
		return p.cut()
	case p.w.Lacks&Clocks == 0:
		p.w.history.Printf("== the clock of %s is set ahead by %v", p.who, p.w.D)
		p.clock.Step(p.w.D)
	default:
		p.w.revoke(0)
	}
	return func() {}
}

// losing are the reasons that a loss may have which lose brought about.
func (w *world) losing() []lease.Code {
	if w.Lacks&stalling == 0 {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revoked()
}

// revoked are the reasons that a loss may have which revoke brought about: an authority that
// the suite does not know may have no breaks.
func (w *world) revoked() []lease.Code {
	if w.truth != nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrLost, lease.ErrNotPresent, lease.ErrIDMismatch}
}

// endingAfter returns a context that ends after d: within an operation, if that takes so
// long. Of one that takes no time, yields decides.
func (p *probe) endingAfter(d time.Duration, yields int) context.Context {
	ctx, cancel := context.WithCancel(p.ctx)
	go func() {
		p.Sleep(d)
		for range yields {
			runtime.Gosched()
		}
		cancel()
	}()
	p.Cleanup(func() { <-ctx.Done() })
	return ctx
}

// slow is a network on which every request takes some time, there and back, so that others
// come between also where an authority takes none.
func (p *probe) slow() Line[lease.Action] {
	return Always(Any, Chain(DelayRequest(p.Unit/100), DelayAnswer(p.Unit/100)))
}

// deaf holds requests at the gate, of an authority that does not look at its context.
func deaf(g *Gate) Fault {
	return func(ctx context.Context, c *Call) error { return g.HoldRequest(context.WithoutCancel(ctx), c) }
}

// deafAnswer holds answers at the gate, whatever the context.
func deafAnswer(g *Gate) Fault {
	return func(ctx context.Context, c *Call) error { return g.HoldAnswer(context.WithoutCancel(ctx), c) }
}

// reach waits until a call is at the gate.
func (p *probe) reach(g *Gate) {
	p.Helper()
	select {
	case <-g.Reached():
	case <-time.After(p.D + p.patience()):
		p.Fatalf("the call that the rule waits for was not made")
	}
}
