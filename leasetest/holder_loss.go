package leasetest

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// lossRules check losses, handlers and contexts.
var lossRules = []rule{
	{"H15/a-loss-is-reported-once", "each handler is called exactly once for a loss, with the token and the reason, and once more for the loss of the next term", canLose, func(p *tester) {
		w, a := p.one()
		other := new(lossLog)
		a.OnLost(other.handle)
		losses := 3
		if p.Bubble {
			losses = 20
		}
		for n := range losses {
			tok := a.acquire()
			a.lose()
			p.pass(p.D + p.Slack)
			a.requireLost(n+1, "a duration after its last renewal", tok, w.lossReasons()...)
			p.pass(p.D)
			a.requireLosses(n + 1)
			if m := len(other.all()); m != n+1 {
				p.Errorf("the second handler was called %d times for %d losses", m, n+1)
			}
			a.mend()
			a.acquireWithin(3, "after a loss")
			p.need(a.release(), "release")
			p.pass(p.D)
			a.requireLosses(n + 1)
		}
	}},
	{"H15/a-release-is-no-loss", "a release that took effect first is not reported as a loss, whatever its outcome", canCut, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		p.need(a.release(), "release")
		p.pass(2 * p.D)
		a.requireLosses(0)
		a.acquire()
		a.cut()
		p.pass(p.D / 2) // no renewal arrives during this pause
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		p.pass(2 * p.D)
		a.requireLosses(0)
	}},
	{"H15/reported-at-the-end-though-a-request-hangs", "a loss is reported when the lease is no longer certain, even if a request hangs and ignores its context", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, ignoreContext(gate)))
		tok := a.acquire()
		p.pass(p.D + p.Slack)
		a.requireNotAlive("a duration after it acquired")
		a.requireLostError(a.requireLosses(1), tok, lease.ErrExpired)
	}},
	{"H15/a-release-at-the-end", "a release before the lease is no longer certain is not a loss, and a release from then on does not hide the loss, to the nanosecond", canCut | exactTime, func(p *tester) {
		n := 0
		after := func(d time.Duration) *contender { // acquires, and then cuts the contender off for the time d
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
			a.requireLosses(want)
		}
	}},
	{"H16/handlers-run-in-goroutines-of-their-own", "a handler that blocks delays neither another handler nor a method", canLose, func(p *tester) {
		blocked := make(chan struct{})
		a := p.world().join(Holder{Owner: "a"})
		p.Cleanup(func() { close(blocked) })
		late := new(lossLog)
		a.OnLost(func(error) { <-blocked })
		a.OnLost(late.handle)
		a.acquire()
		a.loseNth(1)
		if n := len(late.all()); n != 1 {
			p.Errorf("the handler after one that blocks was called %d times", n)
		}
		a.mend()
		a.requireNotAlive("after it was lost")
		a.acquireWithin(3, "while a handler blocks")
		p.need(a.release(), "release while a handler blocks")
	}},
	{"H16/every-method-may-be-called-inside", "a handler may call every method", canLose, func(p *tester) {
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
		a.requireAlive("after its handler has acquired again")
	}},
	{"H16/close-may-be-called-inside", "a handler may call Close, and Close waits for no handler", canLose | hasClose, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		closed := make(chan struct{})
		a.OnLost(func(error) {
			a.mend()
			_ = a.Lease.(closer).Close(p.ctx)
			close(closed)
		})
		a.acquire()
		a.lose()
		select {
		case <-closed:
		case <-time.After(2*p.D + p.eventTimeout()):
			p.Fatalf("a handler has called Close, and Close does not return")
		}
		a.requireNotAlive("after close")
	}},
	{"H16/a-handler-registered-after-the-end-is-not-called", "a handler that registers after the end of what is certain is not called for that loss, even if nothing had noticed the loss", CanUseClock, func(p *tester) {
		clock := leasefault.NewClock()
		a := p.world().join(Holder{Owner: "a", Clock: clock})
		a.acquire()
		clock.Pause()
		p.pass(p.D + p.Slack)
		late := new(lossLog)
		a.OnLost(late.handle)
		clock.Resume()
		a.awaitLosses(1)
		p.pass(p.D / 4)
		if n := len(late.all()); n != 0 {
			p.Errorf("a handler that registered after the end of what is certain was called %d times", n)
		}
	}},
	{"H16/stop-unregisters", "a handler that was unregistered is not called, and every other is; stop reports whether it was still registered", canLose, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		var logs [4]lossLog
		var stops [4]func() bool
		for i := range logs {
			stops[i] = a.OnLost(logs[i].handle)
		}
		for _, i := range []int{0, 2} {
			if !stops[i]() || stops[i]() {
				p.Errorf("stop must be true once")
			}
		}
		a.acquire()
		a.loseNth(1)
		p.pass(p.D / 4)
		for i := range logs {
			if n := len(logs[i].all()); n != i%2 {
				p.Errorf("the first and the third of four handlers were unregistered, and number %d was called %d times", i+1, n)
			}
		}
	}},
	{"H20/a-bound-context-ends-with-its-term", "a context bound to the holding ends at the loss at the latest, at the release, or at once, each with its cause", canLose | hasWhileHeld, func(p *tester) {
		w, a := p.one()
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

// panicRules call handlers that panic. They run last, because an unrecovered panic ends the process.
var panicRules = []rule{
	{"H16/a-panic-stops-no-other", "a handler that panics stops no other handler", canLose, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		after := new(lossLog)
		a.OnLost(func(error) { p.panic("a handler of OnLost") })
		a.OnLost(after.handle)
		a.acquire()
		a.loseNth(1)
		if n := len(after.all()); n != 1 {
			p.Errorf("the handler after one that panics was called %d times", n)
		}
		a.mend()
		a.acquireWithin(3, "after a handler panicked")
	}},
}

// heldRules check when the contexts of WhileHeld end, and for how long a Release waits for these contexts.
var heldRules = []rule{
	{"H20/a-loss-waits-for-every-context", "after a loss the ID is not released before every context of the term was given back, and is released then", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		w, a, b := p.two(leasefault.From(1, lease.ActionRenew, p.loseAnswer))
		a.acquire()
		_, giveBack1 := lease.WhileHeld(p.ctx, a.Lease)
		_, giveBack2 := lease.WhileHeld(p.ctx, a.Lease)
		p.pass(p.D)
		a.requireNotAlive("a duration after the last answer")
		requireLocked := func(when string) {
			p.Helper()
			if n := len(a.requests.sentOf(lease.ActionRelease)); n != 0 {
				p.Fatalf("%d releases were sent %s", n, when)
			}
			if w.now().State.Locked() {
				b.requireDenied("whose holder has not stopped its work")
			}
		}
		requireLocked("before a context was given back")
		giveBack1()
		giveBack1() // the second call has no effect
		p.pass(p.D / 10)
		requireLocked("when one of two contexts was given back")
		giveBack2()
		p.pass(p.D / 100)
		if len(a.requests.sentOf(lease.ActionRelease)) == 0 {
			p.Errorf("both contexts were given back, and no release was sent")
		}
		w.requireFree("after both contexts were given back")
	}},
	{"H20/a-loss-waits-no-longer-than-the-lease", "after a loss, an ID with a context that is never given back is released when the lease has certainly expired, and not earlier", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		w, a := p.one(leasefault.From(1, lease.ActionRenew, p.loseAnswer))
		a.acquire()
		_, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		p.pass(p.D)
		a.requireNotAlive("a duration after the last answer")
		renewals := a.requests.sentOf(lease.ActionRenew)
		if len(renewals) == 0 {
			p.Fatalf("no renewal in a duration")
		}
		last := renewals[len(renewals)-1]
		var ends time.Time
		for r := w.now(); r.State.Locked(); r = w.now() {
			ends = r.Until
			p.pass(p.D / 100)
		}
		for _, r := range a.requests.sentOf(lease.ActionRelease) {
			if r.at.Before(ends) {
				p.Errorf("a release was sent %v before the end of the lease, and its context was not given back", ends.Sub(r.at))
			}
		}
		bound := last.at.Add(p.D) // every request must have ended by then
		if deadline, ok := last.ctx.Deadline(); ok {
			bound = deadline
		}
		p.pass(time.Until(bound) + p.D*101/100) // the clocks of the holders may differ by less than 1 %
		if len(a.requests.sentOf(lease.ActionRelease)) == 0 {
			p.Errorf("the lease has expired, and no release was sent")
		}
	}},
	{"H20/a-call-does-not-wait-for-work", "a release and a close send the release at once, and a hand-over the change, though contexts were not given back, while the lease is held and after it was lost", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		for i, c := range []struct {
			what  string
			needs Ability
			sends lease.Action
			lost  bool
			call  func(a, b *contender) error
		}{
			{"a release", 0, lease.ActionRelease, false, func(a, _ *contender) error { return a.release() }},
			{"a release", 0, lease.ActionRelease, true, func(a, _ *contender) error { return a.release() }},
			{"a close", hasClose, lease.ActionRelease, false, func(a, _ *contender) error { return a.Lease.(closer).Close(p.ctx) }},
			{"a close", hasClose, lease.ActionRelease, true, func(a, _ *contender) error { return a.Lease.(closer).Close(p.ctx) }},
			{"a hand-over", hasHandOver | CanChange, lease.ActionChange, false, func(a, b *contender) error { return a.giver().HandOver(p.ctx, b.giver().ID()) }},
		} {
			if !p.can(c.needs) {
				continue
			}
			w := p.worldOf(fmt.Sprint(p.name, i))
			a, b := w.join(Holder{Name: w.name, Owner: "a"}, leasefault.From(1, lease.ActionRenew, p.loseAnswer)), w.join(Holder{Name: w.name, Owner: "b"})
			a.acquire()
			_, giveBack := lease.WhileHeld(p.ctx, a.Lease)
			for c.lost && a.stillAlive() {
				p.pass(p.D / 200)
			}
			p.pass(p.D / 50)
			if n := len(a.requests.sentOf(lease.ActionRelease)); n != 0 {
				p.Fatalf("%d releases were sent before %s, and the work was running", n, c.what)
			}
			began := time.Now()
			p.need(butLoss(c.call(a, b)), c.what+" while work is running")
			if after := a.sentAt(c.sends, 1).Sub(began); after > p.D/100 {
				p.Errorf("%s sent its request %v after the call, while work was running", c.what, after)
			}
			b.acquire()
			giveBack()
		}
	}},
	{"H20/a-context-ends-a-stop-window-before-the-lease", "if the lease has a stop window, a context of WhileHeld ends when that begins, while CheckAlive is true, even if nothing else happens then", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		w := p.world()
		hold := func(who string) (a *contender, held context.Context, since time.Time) {
			p.Helper()
			a = w.join(Holder{Name: fmt.Sprint(p.name, who), Owner: who}, leasefault.From(1, lease.ActionRenew, ignoreContext(p.gate())))
			since = time.Now()
			a.acquire()
			held, giveBack := lease.WhileHeld(p.ctx, a.Lease)
			p.Cleanup(giveBack)
			return a, held, since
		}
		// To find the beginning of the stop window, the rule calls WhileHeld for the first holder again and
		// again. The stop window has begun when WhileHeld returns a context that is already done. Each of
		// these calls can wake the goroutine of the first holder, and the goroutine then ends a context in
		// time. Without the calls, the goroutine might end the context too late. For the actual check, the
		// rule therefore uses other holders, for which it calls WhileHeld only once.
		a, _, since := hold("a")
		var begins time.Duration
		for begins == 0 && a.stillAlive() {
			next, giveBack := lease.WhileHeld(p.ctx, a.Lease)
			if next.Err() != nil && a.CheckAlive() {
				begins = time.Since(since)
			}
			giveBack()
			p.pass(p.D / 1000)
		}
		if begins == 0 {
			p.Skipf("the lease has no stop window: a context of WhileHeld can be made as long as CheckAlive is true")
		}
		for i := range 5 {
			b, held, since := hold(fmt.Sprint("b", i))
			p.pass(begins - time.Since(since))
			b.requireAlive("when the stop window has begun")
			if held.Err() == nil {
				p.Errorf("the stop window began after %v, and a context of WhileHeld has not ended", begins)
			}
		}
	}},
	{"H20/no-context-begins-in-the-stop-window", "a context of WhileHeld that is made after the stop window has begun is done at once, and the reason of its cause is stop-window, as that of the contexts before", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		_, a := p.one(leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
		tok := a.acquire()
		held, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		for held.Err() == nil && a.stillAlive() {
			p.pass(p.D / 1000)
		}
		if !a.CheckAlive() {
			p.Skipf("the lease has no stop window: its context ended when CheckAlive was false")
		}
		a.requireLostError(context.Cause(held), tok, lease.ErrStopWindow)
		for a.stillAlive() {
			next, giveBack := lease.WhileHeld(p.ctx, a.Lease)
			if next.Err() == nil && a.CheckAlive() {
				p.Fatalf("a context that was made in the stop window is not done")
			}
			if a.CheckAlive() {
				a.requireLostError(context.Cause(next), tok, lease.ErrStopWindow)
			}
			giveBack()
			p.pass(p.D / 200)
		}
	}},
	{"H20/a-context-begins-after-a-late-renewal", "a context of WhileHeld that is made after a renewal was granted in the stop window is not done, though the contexts before have ended", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		var down atomic.Bool
		down.Store(true)
		a := p.world().join(Holder{Owner: "a"}, leasefault.Always(lease.ActionRenew, leasefault.If(down.Load, leasefault.FailRequest)))
		a.acquire()
		held, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		for held.Err() == nil && a.stillAlive() {
			p.pass(p.D / 1000)
		}
		down.Store(false)
		stopped := time.Now()
		for asked := len(a.requests.sentOf(lease.ActionRenew)); a.stillAlive() && len(a.requests.sentOf(lease.ActionRenew)) == asked; {
			p.pass(p.D / 1000)
		}
		if !a.CheckAlive() {
			if window := time.Since(stopped); window > p.D/8 {
				p.Fatalf("the stop window lasted %v, and no renewal was sent in it", window)
			}
			p.Skipf("the lease has no stop window, or one that is too short for a renewal")
		}
		next, giveBackNext := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBackNext()
		a.requireAliveFor(2*p.D, "after a renewal was granted in the stop window")
		if next.Err() != nil {
			p.Errorf("a renewal was granted in the stop window, and a context that was made then has ended: %v", context.Cause(next))
		}
		if held.Err() == nil {
			p.Errorf("a renewal was granted in the stop window, and has brought a context back")
		}
	}},
}

// After a loss, the first Release returns the loss as its error. The function butLoss returns nil for such an
// error, and returns any other error unchanged.
func butLoss(err error) error {
	if _, isLoss := err.(*lease.LostError); isLoss {
		return nil
	}
	return err
}
