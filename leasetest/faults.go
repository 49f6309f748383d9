package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// The suite knows several methods to cause each of these faults. It uses the first method that the
// implementation supports.

// The method cut disconnects the contender from its authority until mend is called. It needs
// canCut.
func (p *contender) cut() {
	p.w.history.printf("== %s is cut off", p.who)
	if p.w.direct == nil {
		p.mendBy(p.w.Options.Cut(p.w.TB, p.Lease))
		return
	}
	p.mendBy(func() { p.requests.down.Store(false) })
	p.requests.down.Store(true)
}

// If the leases lack CanUseAuthority, cutWithoutScript disconnects the contender from its
// authority. If the leases have CanUseAuthority, cutWithoutScript does nothing. In that case,
// faults that the rule has passed to join already apply to the requests of the contender. The
// method cutWithoutScript needs the ability canCut.
func (p *contender) cutWithoutScript() {
	if p.w.direct == nil {
		p.cut()
	}
}

// The method stall prevents renewals of the contender until mend is called. It cuts the contender
// off, or pauses its clock. It needs canStall.
func (p *contender) stall() {
	if p.w.can(canCut) {
		p.cut()
		return
	}
	p.w.history.printf("== %s pauses", p.who)
	p.mendBy(p.clock.Resume)
	p.clock.Pause()
}

// The method lose makes the contender lose its lease within the duration of that lease. To do so,
// it disconnects the contender from its authority, sets the contender's clock ahead, or breaks the
// lease. If lose has disconnected the contender, mend connects it again. The method lose needs the
// ability canLose.
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

// lossReasons returns the reasons for a loss that a holder may report after a call of
// [contender.lose].
func (w *world) lossReasons() []lease.Code {
	if w.can(canStall) {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revokeReasons()
}

// revokeReasons returns the reasons for a loss that a holder may report after a call of
// world.revoke. If Options.Revoke is set, several reasons are possible, because Options.Revoke may
// end the lease without a break, for example by deleting the key of the lease.
func (w *world) revokeReasons() []lease.Code {
	if w.Options.Revoke == nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrOver, lease.ErrNotPresent, lease.ErrIDMismatch}
}

// endingAfter returns a context that a goroutine cancels. The goroutine first sleeps for d and then
// calls runtime.Gosched several times. The argument yields is the number of these calls. An
// operation may take no time in a bubble. The more often runtime.Gosched is called, the later in
// the operation the context is canceled.
func (p *probe) endingAfter(d time.Duration, yields int) context.Context {
	return p.endingBecause(context.Canceled, d, yields)
}

// endingBecause does the same as endingAfter. The context has the given cause.
func (p *probe) endingBecause(cause error, d time.Duration, yields int) context.Context {
	ctx, cancel := context.WithCancelCause(p.ctx)
	go func() {
		p.Sleep(d)
		for range yields {
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
// context of the request is never canceled. At the end of the rule, loseRequest returns in any
// case.
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
