package leasetest

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// lossRules check losses, handlers and contexts.
var lossRules = []rule{
	{"H15/a-loss-is-reported-once", "each handler is called exactly once for a loss, with the token and the reason, and once more for the loss of the next incarnation", canLose, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		other := new(losses)
		a.OnLost(other.handle)
		losses := 3
		if p.Bubble {
			losses = 20
		}
		for n := range losses {
			tok := a.acquire()
			a.lose()
			p.pass(p.D + p.Slack)
			a.dead("a duration after its last renewal")
			a.requireLostError(a.requireLosses(n+1), tok, w.lossReasons()...)
			p.pass(p.D)
			a.lostSoFar(n + 1)
			if m := len(other.all()); m != n+1 {
				p.Errorf("the second handler was called %d times for %d losses", m, n+1)
			}
			a.mend()
			a.acquireWithin(3, "after a loss")
			p.need(a.release(), "release")
			p.pass(p.D)
			a.lostSoFar(n + 1)
		}
	}},
	{"H15/a-release-is-no-loss", "a release that took effect first is not reported as a loss, whatever its outcome", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		p.need(a.release(), "release")
		p.pass(2 * p.D)
		a.lostSoFar(0)
		a.acquire()
		a.cut()
		p.pass(p.D / 2) // meanwhile no renewal arrives
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		p.pass(2 * p.D)
		a.lostSoFar(0)
	}},
	{"H15/what-was-not-held-is-not-lost", "an acquire that was not granted is never reported as a loss", canCut, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		b := w.join(Holder{Owner: "b"}, leasefault.Nth(2, lease.ActionAcquire, leasefault.FailAnswer), leasefault.Nth(3, lease.ActionAcquire, p.loseAnswer), leasefault.Nth(4, lease.ActionAcquire, leasefault.FailRequest))
		a.acquire()
		b.requireDenied("that another holds")
		p.need(a.release(), "release")
		b.orCut()
		b.requireError(p.ctx, "whose answer is lost")
		p.pass(3 * p.D)
		b.lostSoFar(0)
	}},
	{"H15/reported-at-the-end-though-a-request-hangs", "a loss is reported when the lease is no longer certain, even if a request hangs and ignores its context", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, ignoreContext(gate)))
		tok := a.acquire()
		p.pass(p.D + p.Slack)
		a.dead("a duration after it acquired")
		a.requireLostError(a.lostSoFar(1), tok, lease.ErrExpired)
	}},
	{"H15/not-before-the-acquire-is-decided", "an acquire that did not return true is not reported as lost, and one that did is", CanUseAuthority, func(p *probe) {
		w := p.world()
		sure := p.D / 10
		w.answer(func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining = min(res.MinRemaining, sure) })
		type try struct {
			*contender
			granted atomic.Bool
			early   atomic.Int32
		}
		var tries sync.WaitGroup
		var all []*try
		for i := range 21 { // the tries are concurrent, and each has a lease of its own
			delay := sure - 20*time.Millisecond + time.Duration(i)*2*time.Millisecond
			a := &try{contender: w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a" + fmt.Sprint(i)}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(delay)), leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))}
			all = append(all, a)
			a.OnLost(func(error) {
				if p.Bubble {
					time.Sleep(time.Nanosecond) // the goroutine that called Acquire runs first
				}
				if !a.granted.Load() {
					a.early.Add(1)
				}
			})
			tries.Go(func() {
				_, ok, _ := a.tryAcquire(p.ctx)
				a.granted.Store(ok)
			})
		}
		tries.Wait()
		p.pass(p.D + p.Slack)
		for _, a := range all {
			want := 0
			if a.granted.Load() {
				want = 1
			}
			a.requireLosses(want)
			if p.Bubble && a.early.Load() != 0 {
				p.Errorf("%s: a loss was reported before the acquire was decided", a.who)
			}
		}
	}},
	{"H15/a-release-at-the-end", "a release before the lease is no longer certain is not a loss, and a release from then on does not hide the loss, to the nanosecond", canCut | exactTime, func(p *probe) {
		n := 0
		after := func(d time.Duration) *contender { // acquires, and then cuts the contender off for d
			n++
			a := p.world().join(Holder{Name: fmt.Sprint(p.name, n), Owner: "a"})
			a.acquire()
			a.cut()
			p.Sleep(d)
			return a
		}
		end := sort.Search(int(p.D), func(d int) bool { return !after(time.Duration(d)).CheckAlive() })
		for i := range 90 { // the order of two events at the same time is not defined
			d := i%3 - 1
			a := after(time.Duration(end + d))
			want := 1
			if a.CheckAlive() {
				want = 0
			}
			p.history.printf("== released %d ns from the end of what is certain", d)
			_ = a.release()
			p.pass(p.D)
			a.lostSoFar(want)
		}
	}},
	{"H16/a-blocked-break-handler-delays-nothing", "a handler of OnBreaking that blocks delays neither another handler nor the loss", canRevoke | CanBreak | CanShowRecords | hasOnBreaking, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		blocked := make(chan struct{})
		p.Cleanup(func() { close(blocked) })
		a.Lease.(breakNotifier).OnBreaking(func(time.Time) { <-blocked })
		warned := a.recordBreaks()
		a.acquire()
		w.revoke(p.D * 3 / 4)
		p.pass(p.D/2 + p.Slack/4)
		if n := len(warned()); n != 1 {
			p.Errorf("the handler after one that blocks was called %d times", n)
		}
		p.pass(p.D / 2)
		a.dead("when the break is over")
		a.requireLosses(1)
	}},
	{"H16/handlers-run-in-goroutines-of-their-own", "a handler that blocks delays neither another handler nor a method", canLose, func(p *probe) {
		blocked := make(chan struct{})
		a := p.world().join(Holder{Owner: "a"})
		p.Cleanup(func() { close(blocked) })
		late := new(losses)
		a.OnLost(func(error) { <-blocked })
		a.OnLost(late.handle)
		a.acquire()
		a.loseOnce(1)
		if n := len(late.all()); n != 1 {
			p.Errorf("the handler after one that blocks was called %d times", n)
		}
		a.mend()
		a.dead("after it was lost")
		a.acquireWithin(3, "while a handler blocks")
		p.need(a.release(), "release while a handler blocks")
	}},
	{"H16/every-method-may-be-called-inside", "a handler may call every method", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		done := make(chan bool, 1)
		a.OnLost(func(error) {
			a.mend()
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
		a.lose()
		select {
		case ok := <-done:
			if !ok {
				p.Errorf("inside the handler CheckAlive was true, or Acquire was not granted")
			}
		case <-time.After(2*p.D + p.eventTimeout()):
			p.Fatalf("the handler does not come to its end")
		}
		a.alive("after its handler has acquired again")
	}},
	{"H16/a-late-handler-is-not-called", "a handler that registers after a loss is called for the next loss, and not for that one", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		late := new(losses)
		for n := range 2 {
			a.acquireWithin(3, "before a loss")
			a.loseOnce(n + 1)
			a.mend()
			if n == 0 {
				a.OnLost(late.handle)
				p.pass(p.D)
			}
			if m := len(late.all()); m != n {
				p.Errorf("after %d losses, the handler that registered after the first was called %d times", n+1, m)
			}
		}
	}},
	{"H16/stop-unregisters", "a handler that was unregistered is not called; stop reports whether it was still registered", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		gone := new(losses)
		stop := a.OnLost(gone.handle)
		if !stop() || stop() {
			p.Errorf("stop must be true once")
		}
		a.acquire()
		a.loseOnce(1)
		if n := len(gone.all()); n != 0 {
			p.Errorf("a handler that was unregistered was called %d times", n)
		}
	}},
	{"H16/stop-unregisters-its-own", "the function stop unregisters the handler that it came with, and no other", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		lostTimes := []*losses{new(losses), new(losses), new(losses)}
		stops := make([]func() bool, len(lostTimes))
		for i, l := range lostTimes {
			stops[i] = a.OnLost(l.handle)
		}
		stops[1]()
		a.acquire()
		a.loseOnce(1)
		for i, want := range []int{1, 0, 1} {
			if n := len(lostTimes[i].all()); n != want {
				p.Errorf("the second of three handlers was unregistered, and handler %d was called %d times", i+1, n)
			}
		}
	}},
	{"H16/a-handler-registered-inside-is-not-called", "a handler that another handler registers is called for the next loss, and not for this one", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		inner := new(losses)
		var once sync.Once
		a.OnLost(func(error) { once.Do(func() { a.OnLost(inner.handle) }) })
		for n := range 2 {
			a.acquireWithin(5, "before a loss")
			a.loseOnce(n + 1)
			p.pass(p.D / 4)
			if m := len(inner.all()); m != n {
				p.Errorf("after %d losses, the handler that was registered inside the first was called %d times", n+1, m)
			}
			a.mend()
		}
	}},
	{"H20/a-bound-context-ends-with-its-incarnation", "a context bound to the holding ends at the loss at the latest, at the release, or at once, each with its cause", canLose | hasWhileHeld, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
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
		parent, cancel := context.WithCancel(p.ctx)
		child, stop := lease.WhileHeld(parent, a.Lease)
		defer stop()
		cancel()
		p.pass(0)
		if child.Err() == nil {
			p.Errorf("the context that it was made of ended, and it did not")
		}
		lost, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		a.lose()
		p.pass(p.D + p.Slack)
		if lost.Err() == nil {
			p.Fatalf("the lease was lost, and the context has not ended")
		}
		a.requireLostError(context.Cause(lost), tok, append(w.lossReasons(), lease.ErrStopWindow)...)
	}},
}

// panicRules run last, because the process ends if a lease does not recover from a panic of a
// handler.
var panicRules = []rule{
	{"H16/a-panic-stops-no-other", "a handler that panics stops no other handler", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		after := new(losses)
		a.OnLost(func(error) { p.panic("a handler of OnLost") })
		a.OnLost(after.handle)
		a.acquire()
		a.loseOnce(1)
		if n := len(after.all()); n != 1 {
			p.Errorf("the handler after one that panics was called %d times", n)
		}
		a.mend()
		a.acquireWithin(3, "after a handler panicked")
	}},
}
