package leasetest

import (
	"context"
	"runtime"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// The leases under test may support several kinds of faults. Each of the following methods uses the first
// kind that the leases support.

// The method cut disconnects the contender from its authority. Until the method mend is called, no request of
// the contender reaches the authority. A rule that calls cut needs the ability canCut.
func (p *contender) cut() {
	p.w.history.printf("== %s is cut off", p.who)
	if p.w.direct == nil {
		p.mendBy(p.w.Options.Lease.Cut(p.w.TB, p.Lease))
		return
	}
	p.mendBy(func() { p.requests.down.Store(false) })
	p.requests.down.Store(true)
}

// cutWithoutScript calls cut if the leases lack CanUseAuthority. Otherwise the rule passes faults to join. It
// needs canCut.
func (p *contender) cutWithoutScript() {
	if p.w.direct == nil {
		p.cut()
	}
}

// stall prevents renewals until mend is called: it cuts the connection or pauses the clock. It needs
// canStall.
func (p *contender) stall() {
	if p.w.can(canCut) {
		p.cut()
		return
	}
	p.w.history.printf("== %s pauses", p.who)
	p.mendBy(p.clock.Resume)
	p.clock.Pause()
}

// The method lose makes the contender lose its lease, at the latest when the duration of the lease has
// passed. The method disconnects the contender until the method mend is called, sets the clock of the
// contender ahead, or breaks the lease. A rule that calls lose needs the ability canLose.
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

// mend ends the fault that cut or stall has caused, if there is one.
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

// lossReasons returns the possible reasons of a loss after [contender.lose].
func (w *world) lossReasons() []lease.Code {
	if w.can(canStall) {
		return []lease.Code{lease.ErrExpired}
	}
	return w.revokeReasons()
}

// revokeReasons returns the possible reasons of a loss after world.revoke. With Options.Lease.Revoke, the
// lease can end without a break, for example because its key is deleted.
func (w *world) revokeReasons() []lease.Code {
	if w.Options.Lease.Revoke == nil {
		return []lease.Code{lease.ErrBroken}
	}
	return []lease.Code{lease.ErrBroken, lease.ErrEnded, lease.ErrNotPresent, lease.ErrIDMismatch}
}

func (p *tester) doneContext() context.Context {
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	return ctx
}

// endingAfter returns a context that a goroutine cancels after it has slept for d and then called
// runtime.Gosched n times. In a bubble, many operations take no time, so the time d cannot select a moment
// during such an operation. The number n selects this moment instead: each call of runtime.Gosched lets the
// goroutine of the operation run a little further before the context is canceled.
func (p *tester) endingAfter(d time.Duration, n int) context.Context {
	return p.endingBecause(context.Canceled, d, n)
}

// endingBecause is like endingAfter, but the context ends with the given cause.
func (p *tester) endingBecause(cause error, d time.Duration, n int) context.Context {
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

// slow delays every request and every answer, so that requests overlap even if the authority answers at once.
func (p *tester) slow() leasefault.Line[lease.Action] {
	return leasefault.Always(leasefault.Any, leasefault.Chain(leasefault.DelayRequest(p.Unit/100), leasefault.DelayAnswer(p.Unit/100)))
}

// loseRequest drops the request. Unlike leasefault.LoseRequest, it returns at the end of the rule even if the
// context of the request is never canceled.
func (p *tester) loseRequest(ctx context.Context, _ *leasefault.Call) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return leasefault.ErrInjected
	}
}

// loseAnswer executes the request and drops the answer.
func (p *tester) loseAnswer(ctx context.Context, c *leasefault.Call) error {
	_ = c.Send(ctx)
	return p.loseRequest(ctx, c)
}

// ignoreContext blocks requests at the gate even after their contexts are canceled.
func ignoreContext(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldRequest(context.WithoutCancel(ctx), c)
	}
}

// ignoreContextOfAnswer blocks answers at the gate even after the contexts of their requests are canceled.
func ignoreContextOfAnswer(g *leasefault.Gate) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		return g.HoldAnswer(context.WithoutCancel(ctx), c)
	}
}

// waitReached waits until a call has reached the gate.
func (p *tester) waitReached(g *leasefault.Gate) {
	p.Helper()
	select {
	case <-g.Reached():
	case <-time.After(p.D + p.eventTimeout()):
		p.Fatalf("the call that the rule waits for was not made")
	}
}
