package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A fault of a contender is caused by one of three methods: [contender.cut], [contender.stall] or
// [contender.lose]. Each of these methods can cause its fault in several ways, and uses the first
// way that the implementation supports.

// cut stops all requests of the contender from reaching its authority, until the rule calls mend.
// cut needs the ability canCut.
func (p *contender) cut() {
	p.w.history.printf("== %s is cut off", p.who)
	if p.w.direct == nil {
		p.mendBy(p.w.Options.Lease.Cut(p.w.TB, p.Lease))
		return
	}
	p.mendBy(func() { p.requests.down.Store(false) })
	p.requests.down.Store(true)
}

// cutWithoutScript calls cut if the leases lack CanUseAuthority. If the leases have CanUseAuthority,
// cutWithoutScript does nothing, because the rule passes faults to the method join instead.
// cutWithoutScript needs the ability canCut.
func (p *contender) cutWithoutScript() {
	if p.w.direct == nil {
		p.cut()
	}
}

// stall prevents renewals of the contender until the rule calls mend. stall disconnects the
// contender from its authority, or pauses the contender's clock. stall needs the ability canStall.
func (p *contender) stall() {
	if p.w.can(canCut) {
		p.cut()
		return
	}
	p.w.history.printf("== %s pauses", p.who)
	p.mendBy(p.clock.Resume)
	p.clock.Pause()
}

// lose makes the contender lose its lease within one duration of the lease. lose disconnects the
// contender from its authority, sets the contender's clock ahead, or breaks the lease. A later call
// of mend connects a disconnected contender again. lose needs the ability canLose.
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

// mend connects a disconnected contender to its authority again, or resumes its paused clock. If
// the contender is neither disconnected nor paused, mend does nothing.
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

// lossReasons returns the possible reasons for the loss of a lease after a call of
// [contender.lose].
func (w *world) lossReasons() []lease.Code {
	if w.can(canStall) {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revokeReasons()
}

// revokeReasons returns the possible reasons for the loss of a lease after a call of world.revoke.
// There are several reasons if Options.Lease.Revoke is set, because Options.Lease.Revoke can end the lease
// without a break. For example, Options.Lease.Revoke can delete the key of the lease.
func (w *world) revokeReasons() []lease.Code {
	if w.Options.Lease.Revoke == nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrOver, lease.ErrNotPresent, lease.ErrIDMismatch}
}

// endingAfter returns a context that is canceled after d. A goroutine sleeps for d, calls
// runtime.Gosched n times, and then cancels the context. In a bubble, many operations take no time.
// If n is larger, an operation of another goroutine gets further before the context is canceled.
func (p *probe) endingAfter(d time.Duration, n int) context.Context {
	return p.endingBecause(context.Canceled, d, n)
}

// endingBecause is like endingAfter, but the context has the given cause.
func (p *probe) endingBecause(cause error, d time.Duration, n int) context.Context {
	ctx, cancel := context.WithCancelCause(p.ctx)
	go func() {
		p.Sleep(d)
		for range n {
			runtime.Gosched()
		}
		cancel(cause)
	}()
	p.Cleanup(func() { <-ctx.Done() })
	return ctx
}

// slow returns a leasefault.Line that delays every request and every answer. The delays make
// requests overlap even if the authority answers at once.
func (p *probe) slow() leasefault.Line[lease.Action] {
	return leasefault.Always(leasefault.Any, leasefault.Chain(leasefault.DelayRequest(p.Unit/100), leasefault.DelayAnswer(p.Unit/100)))
}

// loseRequest drops the request. Unlike leasefault.LoseRequest, loseRequest also blocks if the
// context of the request is never canceled. When the rule ends, loseRequest returns in any case.
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

// ignoreContext returns a Fault that blocks requests at the gate. Like an authority that ignores
// contexts, the Fault blocks a request even after the context of the request is canceled.
func ignoreContext(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldRequest(context.WithoutCancel(ctx), c)
	}
}

// ignoreContextOfAnswer returns a Fault that blocks each answer at the gate, even after the context
// of the request is canceled.
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
