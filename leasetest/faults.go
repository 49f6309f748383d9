package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// The suite can cause each of these faults in several ways. It uses the first way that the
// implementation supports.

// cut cuts the contender off from its authority until mend is called. It needs canCut.
func (p *contender) cut() {
	p.w.history.printf("== %s is cut off", p.who)
	if p.w.direct == nil {
		p.mendBy(p.w.Options.Cut(p.w.TB, p.Lease))
		return
	}
	p.mendBy(func() { p.requests.down.Store(false) })
	p.requests.down.Store(true)
}

// orCut cuts off a contender that does not use Holder.Authority. For such a contender, a fault in a
// script has no effect. It needs canCut.
func (p *contender) orCut() {
	if p.w.direct == nil {
		p.cut()
	}
}

// stall prevents renewals of the contender until mend is called. It cuts the contender off, or
// pauses its clock. It needs canStall.
func (p *contender) stall() {
	if p.w.can(canCut) {
		p.cut()
		return
	}
	p.w.history.printf("== %s pauses", p.who)
	p.mendBy(p.clock.Resume)
	p.clock.Pause()
}

// lose makes the contender lose its lease within the duration of that lease. It breaks the lease,
// sets the clock of the contender ahead, or cuts the contender off until mend is called. It needs
// canLose.
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

// mend undoes the effect of cut, stall and lose.
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

// lossReasons returns the possible reasons of a loss that the function lose causes.
func (w *world) lossReasons() []lease.Code {
	if w.can(canStall) {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revokeReasons()
}

// revokeReasons returns the possible reasons of a loss that the function revoke causes. With
// Options.Revoke, there are several, because the test may end the lease in another way than by a
// break.
func (w *world) revokeReasons() []lease.Code {
	if w.Options.Revoke == nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrOver, lease.ErrNotPresent, lease.ErrIDMismatch}
}

// endingAfter returns a context that a goroutine cancels. The goroutine first sleeps for d and then
// calls runtime.Gosched several times. The number of these calls determines where the context
// cancels an operation that takes no time.
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

// slow returns a line of a script that delays every request and every answer. The delays make
// requests overlap even if the authority answers at once.
func (p *probe) slow() leasefault.Line[lease.Action] {
	return leasefault.Always(leasefault.Any, leasefault.Chain(leasefault.DelayRequest(p.Unit/100), leasefault.DelayAnswer(p.Unit/100)))
}

// loseRequest drops the request. Unlike leasefault.LoseRequest, it also blocks if the context of
// the request is never canceled. At the end of the rule it returns in any case.
func (p *probe) loseRequest(ctx context.Context, _ *leasefault.Call) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return leasefault.ErrInjected
	}
}

// loseAnswer executes the request and drops the answer.
func (p *probe) loseAnswer(ctx context.Context, c *leasefault.Call) error {
	_ = c.Send(ctx)
	return p.loseRequest(ctx, c)
}

// ignoreContext blocks requests at the gate even after their contexts are canceled, like an
// authority that ignores contexts.
func ignoreContext(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldRequest(context.WithoutCancel(ctx), c)
	}
}

// ignoreContextOfAnswer blocks answers at the gate even after the contexts of the requests are
// canceled.
func ignoreContextOfAnswer(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldAnswer(context.WithoutCancel(ctx), c)
	}
}

// waitReached waits until a call has reached the gate.
func (p *probe) waitReached(g *leasefault.Gate) {
	p.Helper()
	select {
	case <-g.Reached():
	case <-time.After(p.D + p.eventTimeout()):
		p.Fatalf("the call that the rule waits for was not made")
	}
}
