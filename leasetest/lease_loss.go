package leasetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

var lossRules = []rule{
	{"H15/a-loss-is-told-once", "each handler is told of a loss exactly once, with the token and the reason, and once more of the next incarnation's", Injecting, func(p *probe) {
		var down atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(Any, If(down.Load, FailRequest)))
		other := new(losses)
		a.OnLost(other.handle)
		for n := range 3 {
			tok := a.acquire()
			down.Store(true)
			p.pass(p.D + p.Slack)
			a.dead("a duration after its last renewal")
			a.lostError(a.told(n+1), tok, lease.ErrExpired)
			p.pass(p.D)
			a.toldSoFar(n + 1)
			if m := len(other.all()); m != n+1 {
				p.Errorf("the second handler was told %d times of %d losses", m, n+1)
			}
			down.Store(false)
			a.until(3, "after a loss")
			p.need(a.release(), "release")
			p.pass(p.D)
			a.toldSoFar(n + 1)
		}
	}},
	{"H15/a-release-is-no-loss", "a release that took effect first is not told as a loss, whatever becomes of it", Injecting, func(p *probe) {
		var down atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(Any, If(down.Load, LoseRequest)))
		a.acquire()
		p.need(a.release(), "release")
		p.pass(2 * p.D)
		a.toldSoFar(0)
		a.acquire()
		down.Store(true)
		p.pass(p.D / 2) // a renewal hangs
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		p.pass(2 * p.D)
		a.toldSoFar(0)
	}},
	{"H15/what-was-not-held-is-not-lost", "an acquire that was not granted is never told as a loss", Injecting, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		b := w.join(Holder{Owner: "b"}, Nth(2, lease.Acquire, FailAnswer), Nth(3, lease.Acquire, LoseAnswer), Nth(4, lease.Acquire, FailRequest))
		a.acquire()
		b.denied("that another holds")
		p.need(a.release(), "release")
		b.fails(p.ctx, "whose answer is lost")
		p.pass(3 * p.D)
		b.toldSoFar(0)
	}},
	{"H15/told-at-the-end-though-a-request-hangs", "a loss is told at the end of what is certain, though a request hangs that does not look at its context", Injecting, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, From(1, lease.Renew, deaf(gate)))
		tok := a.acquire()
		p.pass(p.D + p.Slack)
		a.dead("a duration after it acquired")
		a.lostError(a.toldSoFar(1), tok, lease.ErrExpired)
	}},
	{"H15/not-before-the-acquire-is-decided", "what an acquire did not return as held is not told as lost, and what it did is", Injecting, func(p *probe) {
		w := p.world()
		sure := p.D / 10
		w.truth = Answer(w.truth, func(_ lease.Request, res *lease.Result, _ *error) { res.Sure = min(res.Sure, sure) })
		for i := range 21 {
			delay := sure - 20*time.Millisecond + time.Duration(i)*2*time.Millisecond
			a := w.join(Holder{Name: p.name + string(rune('a'+i)), Owner: "a"}, Nth(1, lease.Acquire, DelayAnswer(delay)), From(1, lease.Renew, FailRequest))
			var granted atomic.Bool
			var early atomic.Int32
			a.OnLost(func(error) {
				if p.Bubble {
					time.Sleep(time.Nanosecond) // whoever waits for Acquire runs first
				}
				if !granted.Load() {
					early.Add(1)
				}
			})
			_, ok, _ := a.tryAcquire(p.ctx)
			granted.Store(ok)
			p.pass(p.D + p.Slack)
			want := 0
			if ok {
				want = 1
			}
			a.told(want)
			if p.Bubble && early.Load() != 0 {
				p.Errorf("a loss was told before the acquire was decided")
			}
		}
	}},
	{"H16/handlers-run-on-their-own", "a handler that blocks keeps neither another from being told nor a method from returning", Injecting, func(p *probe) {
		var down atomic.Bool
		w := p.world()
		blocked := make(chan struct{})
		a := w.join(Holder{Owner: "a"}, Always(Any, If(down.Load, FailRequest)))
		p.Cleanup(func() { close(blocked) })
		late := new(losses)
		a.OnLost(func(error) { <-blocked })
		a.OnLost(late.handle)
		a.acquire()
		down.Store(true)
		p.pass(p.D + p.Slack)
		a.told(1)
		if n := len(late.all()); n != 1 {
			p.Errorf("the handler after one that blocks was told %d times", n)
		}
		down.Store(false)
		a.dead("after it was lost")
		a.until(3, "while a handler blocks")
		p.need(a.release(), "release while a handler blocks")
	}},
	{"H16/a-panic-stops-no-other", "a handler that panics keeps no other from being told", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, From(1, lease.Renew, FailRequest))
		after := new(losses)
		a.OnLost(func(error) { panic("a handler of the suite panics") })
		a.OnLost(after.handle)
		a.acquire()
		p.pass(p.D + p.Slack)
		a.told(1)
		if n := len(after.all()); n != 1 {
			p.Errorf("the handler after one that panics was told %d times", n)
		}
		a.acquire()
	}},
	{"H16/every-method-may-be-called-inside", "a handler may call every method", Injecting, func(p *probe) {
		var up atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(lease.Renew, If(func() bool { return !up.Load() }, FailRequest)))
		done := make(chan bool, 1)
		a.OnLost(func(error) {
			up.Store(true)
			alive := a.CheckAlive()
			stop := a.OnLost(func(error) {})
			stop()
			_ = a.Release(p.ctx)
			ok := false
			for range 5 {
				if ok, _ = a.Acquire(p.ctx); ok {
					break
				}
			}
			done <- ok && !alive
		})
		a.acquire()
		select {
		case ok := <-done:
			if !ok {
				p.Errorf("inside the handler CheckAlive was true, or Acquire was not granted")
			}
		case <-time.After(2*p.D + p.patience()):
			p.Fatalf("the handler does not come to its end")
		}
		a.alive("after its handler has acquired again")
	}},
	{"H16/a-late-handler-is-not-told", "a handler that registers after a loss is not told of it, but of the next", Injecting, func(p *probe) {
		var down atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(Any, If(down.Load, FailRequest)))
		late := new(losses)
		for n := range 2 {
			a.until(3, "before a loss")
			down.Store(true)
			p.pass(p.D + p.Slack)
			a.told(n + 1)
			down.Store(false)
			if n == 0 {
				a.OnLost(late.handle)
				p.pass(p.D)
			}
			if m := len(late.all()); m != n {
				p.Errorf("after %d losses, the handler that registered after the first was told %d times", n+1, m)
			}
		}
	}},
	{"H16/stop-unregisters", "a handler that was unregistered is not told; stop says whether it was still registered", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, From(1, lease.Renew, FailRequest))
		gone := new(losses)
		stop := a.OnLost(gone.handle)
		if !stop() || stop() {
			p.Errorf("stop must be true once")
		}
		a.acquire()
		p.pass(p.D + p.Slack)
		a.told(1)
		if n := len(gone.all()); n != 0 {
			p.Errorf("a handler that was unregistered was told %d times", n)
		}
	}},
	{"H20/a-bound-context-ends-with-its-incarnation", "a context bound to the holding ends with the loss, the release, or at once, each with its cause", Injecting | Binding, func(p *probe) {
		var down atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(Any, If(down.Load, FailRequest)))
		bound, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		if lease.CodeOf(context.Cause(bound)) != lease.ErrNotHeld {
			p.Errorf("nothing is held, and the cause is %v", context.Cause(bound))
		}
		a.acquire()
		released, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		p.pass(2 * p.D)
		if released.Err() != nil {
			p.Errorf("the context ended while the lease was held: %v", context.Cause(released))
		}
		p.need(a.release(), "release")
		if lease.CodeOf(context.Cause(released)) != lease.ErrReleased {
			p.Errorf("the lease was released, and the cause is %v", context.Cause(released))
		}
		tok := a.acquire()
		lost, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		down.Store(true)
		p.pass(p.D + p.Slack)
		if lost.Err() == nil {
			p.Fatalf("the lease was lost, and the context has not ended")
		}
		a.lostError(context.Cause(lost), tok, lease.ErrExpired)
	}},
}
