package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// Faults that the suite can cause, each by the first means that there is: see the abilities that follow
// from others.

// cut cuts a contender off from its authority, until mend. It needs canCut.
func (p *contender) cut() {
	p.w.history.printf("== %s is cut off", p.who)
	if p.w.direct == nil {
		p.mendBy(p.w.Options.Cut(p.w.TB, p.Lease))
		return
	}
	p.mendBy(func() { p.requests.down.Store(false) })
	p.requests.down.Store(true)
}

// orCut cuts off a contender that no line of a script can reach. It needs canCut.
func (p *contender) orCut() {
	if p.w.direct == nil {
		p.cut()
	}
}

// stall keeps a contender from renewing, until mend: it is cut off, or paused. It needs canStall.
func (p *contender) stall() {
	if p.w.can(canCut) {
		p.cut()
		return
	}
	p.w.history.printf("== %s pauses", p.who)
	p.mendBy(p.clock.Resume)
	p.clock.Pause()
}

// lose makes a contender lose its lease within the duration: it is cut off until mend, its clock is set ahead,
// or a third party breaks the lease. It needs canLose.
func (p *contender) lose() {
	switch {
	case p.w.can(canCut):
		p.cut()
	case p.w.can(CanUseClock):
		p.w.history.printf("== the clock of %s is set ahead by %v", p.who, p.w.D)
		p.clock.Step(p.w.D)
	default:
		p.w.revoke(0)
	}
}

// mend undoes cut, stall and lose.
func (p *contender) mend() {
	p.mending.Lock()
	f := p.mends
	p.mends = nil
	p.mending.Unlock()
	if f != nil {
		p.w.history.printf("== %s is connected again", p.who)
		f()
	}
}

func (p *contender) mendBy(f func()) {
	p.mending.Lock()
	defer p.mending.Unlock()
	p.mends = f
}

// losing returns the reasons that a loss caused by lose may have.
func (w *world) losing() []lease.Code {
	if w.can(canStall) {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revoked()
}

// revoked returns the reasons that a loss caused by revoke may have. An authority that the suite does not
// know may have no breaks.
func (w *world) revoked() []lease.Code {
	if w.Options.Revoke == nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrOver, lease.ErrNotPresent, lease.ErrIDMismatch}
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
func (p *probe) slow() leasefault.Line[lease.Action] {
	return leasefault.Always(leasefault.Any, leasefault.Chain(leasefault.DelayRequest(p.Unit/100), leasefault.DelayAnswer(p.Unit/100)))
}

// loseRequest loses the request. Unlike leasefault.LoseRequest it answers nothing to a request whose
// context never ends, until the rule is over.
func (p *probe) loseRequest(ctx context.Context, _ *leasefault.Call) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return leasefault.ErrInjected
	}
}

// loseAnswer carries the request out, and loses the answer.
func (p *probe) loseAnswer(ctx context.Context, c *leasefault.Call) error {
	_ = c.Send(ctx)
	return p.loseRequest(ctx, c)
}

// ignoreContext holds requests at the gate, of an authority that ignores their contexts.
func ignoreContext(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldRequest(context.WithoutCancel(ctx), c)
	}
}

// ignoreContextOfAnswer holds answers at the gate, and ignores the contexts.
func ignoreContextOfAnswer(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldAnswer(context.WithoutCancel(ctx), c)
	}
}

// reach waits until a call is at the gate.
func (p *probe) reach(g *leasefault.Gate) {
	p.Helper()
	select {
	case <-g.Reached():
	case <-time.After(p.D + p.patience()):
		p.Fatalf("the call that the rule waits for was not made")
	}
}
