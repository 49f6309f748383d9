package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// releaseRules check Release and Close.
var releaseRules = []rule{
	{"H17/release-gives-up", "after a release that returned nil, another holder can acquire at once", 0, func(p *tester) {
		_, a, b := p.two()
		for range 3 {
			a.acquire()
			p.need(a.release(), "release")
			a.requireNotAlive("after its release")
			b.acquire()
			p.need(b.release(), "release")
		}
		a.requireLosses(0)
	}},
	{"H17/a-release-under-a-context-that-it-ends", "a release under a context of WhileHeld returns nil when the lease was released, though the release ends that context", hasWhileHeld, func(p *tester) {
		_, a, b := p.two(leasefault.Always(lease.ActionRelease, leasefault.DelayAnswer(p.Unit/4)))
		a.acquire()
		held, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		p.need(a.Release(held), "a release under a context of WhileHeld")
		b.acquire()
	}},
	{"H17/a-release-under-a-context-that-ended-before", "a release under a context of an earlier term, which has ended, returns its error at once, though nothing answers", CanUseAuthority | hasWhileHeld, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(2, lease.ActionRelease, p.loseRequest))
		a.acquire()
		earlier, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		p.need(a.release(), "release")
		a.acquire()
		began := time.Now()
		err := a.Release(earlier)
		p.history.printf("a: Release: %v", err)
		if took := time.Since(began); took > p.Slack || err == nil {
			p.Errorf("the context had ended, and the release returned %v after %v", err, took)
		}
		a.requireNotAlive("after a release under a context that had ended")
	}},
	{"H17/the-belief-ends-with-the-call", "CheckAlive is false from the call of release on, before the authority is asked", CanUseAuthority, func(p *tester) {
		var a *contender
		var seen, alive, waits atomic.Bool
		a = p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRelease, leasefault.Before(func() {
			seen.Store(true)
			answer := make(chan bool, 1)
			go p.guarded(func() { answer <- a.CheckAlive() })()
			select {
			case is := <-answer:
				alive.Store(is)
			case <-time.After(p.D/10 + p.Slack):
				waits.Store(true)
			}
		})))
		a.acquire()
		p.need(a.release(), "release")
		if !seen.Load() || alive.Load() {
			p.Errorf("CheckAlive is true while the release is under way")
		}
		if waits.Load() {
			p.Errorf("CheckAlive does not return while the release is under way")
		}
	}},
	{"H17/a-release-that-errs-ends-the-belief", "CheckAlive stays false after a release that erred, and nothing is renewed", canCut, func(p *tester) {
		for i, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer, p.loseRequest, p.loseAnswer} {
			w := p.world()
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.From(1, lease.ActionRelease, fault))
			a.acquire()
			a.cutWithoutScript()
			if err := a.release(); err == nil {
				p.Errorf("a release that got no answer returned nil")
			}
			renewals := len(a.requests.sentOf(lease.ActionRenew))
			a.requireNotAliveFor(2*p.D, "after a release that erred")
			if n := len(a.requests.sentOf(lease.ActionRenew)); n != renewals {
				p.Errorf("%d renewals were sent after the release", n-renewals)
			}
			a.requireLosses(0)
		}
	}},
	{"H17/nothing-to-release-is-nil", "a release of nothing returns nil and makes no request", 0, func(p *tester) {
		_, a, b := p.two()
		p.need(a.release(), "release of what was never held")
		b.acquire()
		a.requireDenied("that another holds")
		p.need(a.release(), "release of what another holds")
		b.requireAliveFor(p.D, "after another released nothing")
		p.need(b.release(), "release")
		p.need(b.release(), "second release")
		p.settle()
		if n := len(a.requests.sentOf(lease.ActionRelease)) + len(b.requests.sentOf(lease.ActionRelease)); n > 1 {
			p.Errorf("%d releases of nothing were sent", n-1)
		}
	}},
	{"H17/the-first-release-after-a-loss-returns-it", "the first release after a loss returns the loss, and the next one nil; after another acquire none returns it", canLose, func(p *tester) {
		w, a := p.one()
		for _, acquires := range []bool{false, true} {
			tok := a.acquire()
			a.lose()
			p.pass(p.D + p.Slack)
			a.mend()
			if acquires {
				a.acquire()
			} else {
				a.requireLostError(a.release(), tok, w.lossReasons()...)
			}
			p.need(a.release(), "another release")
		}
	}},
	{"H17/release-again-settles", "after an error a release can be called again, and then returns nil", canCut, func(p *tester) {
		w, a, b := p.two()
		a.acquire()
		a.releaseInVain()
		p.need(a.release(), "second release")
		w.requireFree("after a release that returned nil")
		b.acquire()
	}},
	{"H17/a-conflict-is-no-release", "a release that the authority refused with a conflict has released nothing: Release returns an error, or sends the release again", CanUseAuthority, func(p *tester) {
		w, a := p.one(leasefault.Nth(1, lease.ActionRelease, func(context.Context, *leasefault.Call) error { return lease.ErrConflict }))
		a.acquire()
		if err := a.release(); err != nil {
			p.need(a.release(), "release after a conflict")
		}
		w.requireFree("after a release that returned nil")
	}},
	{"H17/releases-at-once", "of concurrent releases none returns nil before the lease is released", CanUseAuthority, func(p *tester) {
		w, a := p.one(leasefault.Always(lease.ActionRelease, leasefault.DelayRequest(p.D/20)))
		a.acquire()
		p.callConcurrently(3, func(i int) {
			p.Sleep(time.Duration(i) * p.D / 100)
			if err := a.release(); err == nil {
				w.requireFree("after a release that returned nil")
			}
		})
	}},
	{"H17/release-supersedes-an-acquire", "the acquires that are under way when release is called do not hold, and are undone", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		w, a, b := p.two(leasefault.Nth(1, lease.ActionAcquire, gate.HoldAnswer))
		const calls = 2 // the second call waits for the first call, or returns at once
		acquired, released := make(chan bool, calls), make(chan error, 1)
		for range calls {
			go p.guarded(func() {
				_, ok, _ := a.tryAcquire(p.ctx)
				acquired <- ok
			})()
		}
		p.waitReached(gate)
		p.Sleep(p.D / 50)
		go p.guarded(func() { released <- a.release() })()
		p.pass(p.D / 50)
		gate.Open()
		for range calls {
			if <-acquired {
				p.Errorf("Acquire returned true after Release was called")
			}
		}
		<-released
		a.requireNotAliveFor(p.D/2, "after a release during its acquire")
		w.requireFree("after a release during an acquire")
		a.requireLosses(0)
		b.acquire()
	}},
	{"H17/a-holder-that-has-lost-releases-nothing-of-others", "if a lease was lost and acquired by another holder, a late release of the first holder does not end the other's lease", canLose, func(p *tester) {
		_, a, b := p.two()
		a.acquire()
		a.lose()
		p.pass(p.D + p.Slack)
		b.acquire()
		a.mend()
		_ = a.release()
		b.requireAliveFor(3*p.D, "after one that had lost it released")
		b.requireLosses(0)
	}},
	{"H18/after-close-nothing-runs", "after close no request is sent, no handler is called, and no acquire is granted", hasClose, func(p *tester) {
		w, a := p.one()
		closer := a.Lease.(closer)
		a.acquire()
		p.pass(p.D)
		p.need(closer.Close(p.ctx), "close")
		a.requireNotAlive("after close")
		w.requireFree("after close")
		n := len(a.requests.sentOf(leasefault.Any))
		a.requireError(p.ctx, "of what was closed")
		p.pass(5 * p.D)
		if m := len(a.requests.sentOf(leasefault.Any)); m != n {
			p.Errorf("%d requests were made", m-n)
		}
		a.requireLosses(0)
		p.need(closer.Close(p.ctx), "second close")
	}},
	{"H18/close-begins-no-handler", "a close after the end of what is certain calls no handler, even if nothing had noticed the loss", CanUseClock | hasClose, func(p *tester) {
		clock := leasefault.NewClock()
		a := p.world().join(Holder{Owner: "a", Clock: clock})
		a.acquire()
		clock.Pause()
		p.pass(p.D + p.Slack)
		notified := len(a.lost.all())
		_ = a.Lease.(closer).Close(p.ctx)
		clock.Resume()
		p.pass(p.D / 2)
		a.requireLosses(notified)
	}},
	{"H18/a-done-context-closes-too", "a close whose context is done, or ends, ends the holding and an acquire under way all the same", CanUseAuthority | hasClose, func(p *tester) {
		w := p.world()
		b := w.join(Holder{Owner: "b"})
		for _, flying := range []bool{false, true} {
			gate := p.gate()
			if !flying {
				gate.Open()
			}
			one := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, gate.HoldAnswer))
			closer := one.Lease.(closer)
			acquired := make(chan bool, 1)
			ctx, cancel := context.WithCancel(p.ctx)
			if flying {
				go p.guarded(func() {
					_, ok, _ := one.tryAcquire(p.ctx)
					acquired <- ok
				})()
				p.waitReached(gate)
				go p.guarded(func() { p.Sleep(p.D / 50); cancel() })()
			} else {
				one.acquire()
				acquired <- false
				cancel()
			}
			err := closer.Close(ctx)
			p.history.printf("a: Close: %v", err)
			one.requireNotAlive("after close")
			gate.Open()
			if <-acquired {
				p.Errorf("Acquire returned true after close was called")
			}
			one.requireNotAliveFor(p.D+p.Slack, "after close")
			one.requireError(p.ctx, "of what was closed")
			one.requireLosses(0)
			b.acquire()
			p.need(b.release(), "release")
		}
	}},
	{"H18/a-close-ends-with-its-context", "a close whose context ends returns the error of that context at once, though a request ignores its context", CanUseAuthority | hasClose | exactTime, func(p *tester) {
		gate := p.gate()
		w, a := p.one(leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.waitReached(gate)
		ctx, cancel := context.WithTimeout(p.ctx, p.D/50)
		defer cancel()
		closed := make(chan error, 1)
		go p.guarded(func() { closed <- a.Lease.(closer).Close(ctx) })()
		p.pass(p.D / 50)
		select {
		case err := <-closed:
			if !errors.Is(err, context.DeadlineExceeded) {
				p.Errorf("the context of the close ended while a request was in flight, and close returned %v", err)
			}
		default:
			p.Errorf("the context of the close has ended, and close has not returned")
		}
		a.requireNotAlive("after close")
		gate.Open()
		p.pass(p.D / 20)
		w.requireFree("after close, when the request has returned")
		a.requireNotAliveFor(p.D, "after close")
		a.requireLosses(0)
	}},
}

// releaseInVain requires that Release returns an error while the contender cannot reach the authority.
func (p *contender) releaseInVain() {
	p.w.Helper()
	p.cut()
	defer p.mend()
	ctx, cancel := context.WithTimeout(p.w.ctx, p.w.D/4)
	defer cancel()
	err := p.Release(ctx)
	p.w.history.printf("%s: Release: %v", p.who, err)
	if err == nil {
		p.w.Errorf("%s: a release that did not arrive returned nil", p.who)
	}
}
