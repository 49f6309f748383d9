package leasetest

import (
	"sync"
	"time"
)

var handlerRules = []rule{
	{"H16/handlers-run-on-their-own", "a handler that blocks keeps neither another from being told nor a method from returning", canLose, func(p *probe) {
		blocked := make(chan struct{})
		a := p.world().join(Holder{Owner: "a"})
		p.Cleanup(func() { close(blocked) })
		late := new(losses)
		a.OnLost(func(error) { <-blocked })
		a.OnLost(late.handle)
		a.acquire()
		a.isLost(1)
		if n := len(late.all()); n != 1 {
			p.Errorf("the handler after one that blocks was told %d times", n)
		}
		a.mend()
		a.dead("after it was lost")
		a.until(3, "while a handler blocks")
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
		case <-time.After(2*p.D + p.patience()):
			p.Fatalf("the handler does not come to its end")
		}
		a.alive("after its handler has acquired again")
	}},
	{"H16/a-late-handler-is-not-told", "a handler that registers after a loss is not told of it, but of the next", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		late := new(losses)
		for n := range 2 {
			a.until(3, "before a loss")
			a.isLost(n + 1)
			a.mend()
			if n == 0 {
				a.OnLost(late.handle)
				p.pass(p.D)
			}
			if m := len(late.all()); m != n {
				p.Errorf("after %d losses, the handler that registered after the first was told %d times", n+1, m)
			}
		}
	}},
	{"H16/stop-unregisters", "a handler that was unregistered is not told; stop says whether it was still registered", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		gone := new(losses)
		stop := a.OnLost(gone.handle)
		if !stop() || stop() {
			p.Errorf("stop must be true once")
		}
		a.acquire()
		a.isLost(1)
		if n := len(gone.all()); n != 0 {
			p.Errorf("a handler that was unregistered was told %d times", n)
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
		a.isLost(1)
		for i, want := range []int{1, 0, 1} {
			if n := len(lostTimes[i].all()); n != want {
				p.Errorf("the second of three handlers was unregistered, and handler %d was told %d times", i+1, n)
			}
		}
	}},
	{"H16/a-handler-registered-inside-is-not-told", "a handler that another registers when it is told of a loss is not told of that one, but of the next", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		inner := new(losses)
		var once sync.Once
		a.OnLost(func(error) { once.Do(func() { a.OnLost(inner.handle) }) })
		for n := range 2 {
			a.until(5, "before a loss")
			a.isLost(n + 1)
			p.pass(p.D / 4)
			if m := len(inner.all()); m != n {
				p.Errorf("after %d losses, the handler that was registered inside the first was told %d times", n+1, m)
			}
			a.mend()
		}
	}},
}

// panicRules come last: a panic that nothing recovers from ends the process, and with it the
// rules that are left.
var panicRules = []rule{
	{"H16/a-panic-stops-no-other", "a handler that panics keeps no other from being told", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		after := new(losses)
		a.OnLost(func(error) { p.panic("a handler of OnLost") })
		a.OnLost(after.handle)
		a.acquire()
		a.isLost(1)
		if n := len(after.all()); n != 1 {
			p.Errorf("the handler after one that panics was told %d times", n)
		}
		a.mend()
		a.until(3, "after a handler panicked")
	}},
}
