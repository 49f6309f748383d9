package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// breakRules check breaks and hand-overs.
var breakRules = []rule{
	{"H13/a-break-is-kept-to-its-end", "a holder keeps a lease that is breaking until the break's certain end, and then loses it as broken", canRevoke | CanBreak | CanShowRecords, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		tok := a.acquire()
		w.revoke(p.D * 3 / 4)
		began := time.Now() // the break began before this time
		p.pass(p.D*7/10 - p.Slack)
		a.alive("before the end of a break")
		for time.Since(began) < p.D*3/4 {
			if w.direct != nil && a.CheckAlive() && !w.now().State.Locked() {
				a.dead("when the break is over")
			}
			p.pass(p.D / 200)
		}
		a.dead("when the break is over")
		a.requireLostError(a.requireLosses(1), tok, lease.ErrBroken)
		p.pass(p.D)
		a.lostSoFar(1)
	}},
	{"H13/an-immediate-break-is-a-loss", "a holder whose lease was broken at once loses it when it learns so", canRevoke, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		tok := a.acquire()
		w.revoke(0)
		p.pass(p.D/2 + p.Slack)
		a.dead("half a duration after an immediate break")
		a.requireLostError(a.requireLosses(1), tok, w.revokeReasons()...)
	}},
	{"H13/a-break-of-unknown-end-is-a-loss", "if the answer does not show how long a break lasts, the lease is lost at once", CanUseAuthority | CanBreak, func(p *probe) {
		w := p.world()
		w.answer(func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRenew && *err != nil {
				*res = lease.Result{}
			}
		})
		a := w.join(Holder{Owner: "a"})
		tok := a.acquire()
		w.revoke(p.D * 9 / 10)
		p.pass(p.D/2 + p.Slack)
		a.dead("after it learned of a break whose end is not shown")
		a.requireLostError(a.requireLosses(1), tok, lease.ErrBroken)
	}},
	{"H13/a-broken-lease-is-not-renewed", "a break that ends before the belief ends the belief in time, if the holder can reach the authority", canRevoke | CanBreak | CanShowRecords, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		a.aliveFor(p.D, "with nothing in its way")
		w.revoke(p.D / 2) // longer than the interval between renewals
		p.pass(p.D/2 + p.Slack/4)
		a.dead("when the break is over")
		b.acquire()
		a.deadFor(p.D, "after another followed")
	}},
	{"H13/handlers-are-called-at-a-break", "handlers of OnBreaking are called with the end of the lease, and again if that moves earlier", canRevoke | CanBreak | CanShowRecords | hasOnBreaking, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		warned := a.recordBreaks()
		a.acquire()
		began := time.Now()
		w.revoke(p.D * 9 / 10)
		p.pass(p.D*5/12 + p.Slack/4)
		first := warned()
		if len(first) != 1 {
			p.Fatalf("the handler was called %d times for one break: %v", len(first), first)
		}
		if end := first[0].Sub(began); end > p.D*9/10+p.Slack || end < p.D*8/10 {
			p.Errorf("the handler was called with an end in %v, and the break ends in %v", end, p.D*9/10)
		}
		a.alive("after the warning")
		a.lostSoFar(0)
		w.revoke(p.D*17/20 - time.Since(began))
		p.pass(p.D*4/5 - time.Since(began)) // more than one renewal interval later
		if again := warned(); len(again) != 2 || !again[1].Before(first[0]) {
			p.Errorf("the break was shortened, and the handler was called with %v", again)
		}
		p.pass(p.D*17/20 + p.Slack - time.Since(began))
		a.dead("when the break is over")
		a.requireLosses(1)
	}},
	{"H13/a-handler-that-is-unregistered-is-not-called-at-a-break", "a handler of OnBreaking that was unregistered is not called", canRevoke | CanBreak | CanShowRecords | hasOnBreaking, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		stop := a.Lease.(breakNotifier).OnBreaking(func(time.Time) { p.Errorf("a handler that was unregistered was called") })
		if !stop() || stop() {
			p.Errorf("stop must be true once")
		}
		a.acquire()
		w.revoke(p.D / 2)
		p.pass(p.D)
	}},
	{"H14/hand-over", "a hand-over gives the lease to the receiver, no other holder gets it in between, and the giver's incarnation ends without OnLost", hasHandOver | CanChange, func(p *probe) {
		w := p.world()
		a, b, c := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"}), w.join(Holder{Owner: "c"})
		old := a.acquire()
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		a.dead("after it handed over")
		c.requireDenied("that was handed to another")
		if tok := b.acquire(); p.can(hasToken) && tok.Compare(old) <= 0 {
			p.Errorf("the receiver's token is %q, and the giver's was %q", tok, old)
		}
		b.aliveFor(2*p.D, "after it was given the lease")
		a.dead("after it handed over")
		a.lostSoFar(0)
	}},
	{"H14/a-refused-hand-over-is-an-error", "a hand-over that the authority refuses is an error, and no holder gets the lease", hasHandOver | CanChange | canRevoke, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		w.revoke(0) // the holder a has not noticed the break yet
		to := b.giver().ID()
		if err := a.giver().HandOver(p.ctx, to); err == nil {
			p.Errorf("a hand-over of a lease that was broken returned nil")
		}
		a.deadFor(p.D, "after its lease was broken")
		w.unlocked("after a hand-over that was refused")
	}},
	{"H14/a-done-context-hands-nothing-over", "a hand-over under a context that is done makes no request and returns the context's error: the giver goes on holding, or has released", hasHandOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		if err := a.giver().HandOver(ctx, b.giver().ID()); !errors.Is(err, context.Canceled) {
			p.Errorf("the error is %v", err)
		}
		if n := len(a.requests.sentOf(lease.ActionChange)); n != 0 {
			p.Errorf("%d changes were sent", n)
		}
		if a.CheckAlive() {
			b.requireDenied("that was not handed over")
			a.aliveFor(2*p.D, "after a hand-over under a done context that did not end it")
		} else {
			p.pass(p.D / 20)
			b.acquire()
		}
		a.lostSoFar(0)
	}},
	{"H14/the-belief-ends-with-the-hand-over", "CheckAlive is false from the call of a hand-over on, before the authority is asked, also if its answer is lost", hasHandOver | CanChange | CanUseAuthority, func(p *probe) {
		for i, fault := range []leasefault.Fault{leasefault.FailAnswer, leasefault.FailRequest} {
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			var a *contender
			var alive atomic.Bool
			a = w.join(Holder{Name: w.name, Owner: "a"}, leasefault.Nth(1, lease.ActionChange, leasefault.Chain(leasefault.Before(func() { alive.Store(a.CheckAlive()) }), fault)))
			b := w.join(Holder{Name: w.name, Owner: "b"})
			a.acquire()
			if err := a.giver().HandOver(p.ctx, b.giver().ID()); err == nil {
				p.Errorf("a hand-over without an answer returned nil")
			}
			if alive.Load() {
				p.Errorf("CheckAlive is true while the hand-over is under way")
			}
			a.deadFor(p.D, "after a hand-over without an answer")
			a.lostSoFar(0)
		}
	}},
	{"H14/what-is-not-held-is-not-handed-over", "a hand-over of a lease that is not held is an error and changes nothing", hasHandOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		b.acquire()
		if err := a.giver().HandOver(p.ctx, p.id()); err == nil {
			p.Errorf("a hand-over of what another holds returned nil")
		}
		b.aliveFor(p.D, "after another handed over what it did not hold")
	}},
}

// recordBreaks registers a handler of OnBreaking. The function that it returns lists the arguments
// of all calls of that handler so far.
func (p *contender) recordBreaks() (ends func() []time.Time) {
	p.w.Helper()
	var mu sync.Mutex
	var all []time.Time
	p.Lease.(breakNotifier).OnBreaking(func(until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, until)
	})
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), all...)
	}
}

func (p *contender) giver() handOverer { return p.Lease.(handOverer) }
