package leasetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// renewalRules check renewals.
var renewalRules = []rule{
	{"H11/held-as-long-as-it-is-renewed", "a lease that is not broken stays held, under the same token", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		for i := range 6 {
			if p.Bubble && i == 5 {
				a.aliveFor(100*p.D, "with nothing in its way")
			}
			a.aliveFor(p.D, "with nothing in its way")
			b.requireDenied("that another holds")
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		a.lostSoFar(0)
	}},
	{"H11/one-renewal-at-a-time", "at most one renewal is in flight that was not given up", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.pass(p.D * 3 / 2)
		if n := a.requests.maxInFlight(lease.ActionRenew); n != 1 {
			p.Errorf("%d renewals were in flight at once", n)
		}
	}},
	{"H11/a-renewal-that-hangs-is-given-up", "an attempt to renew has a bound of its own, which leaves time for another", CanUseAuthority, func(p *probe) {
		for i, fault := range []leasefault.Fault{p.loseRequest, p.loseAnswer} {
			w := p.world()
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, fault), leasefault.Nth(3, lease.ActionRenew, fault))
			a.acquire()
			a.aliveFor(4*p.D, "after a renewal hung")
			a.lostSoFar(0)
		}
	}},
	{"H11/errors-are-retried", "an error of a renewal is not a loss: the renewal is retried until the lease is no longer certain", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.First(2, lease.ActionRenew, leasefault.FailRequest), leasefault.Nth(5, lease.ActionRenew, leasefault.FailRequest))
		a.acquire()
		a.aliveFor(4*p.D, "after a renewal erred")
		a.lostSoFar(0)
	}},
	{"H11/a-lost-answer-is-no-loss", "a renewal that was carried out, but whose answer is lost, is not a loss", CanUseAuthority, func(p *probe) {
		var all []*contender
		for i, fault := range []leasefault.Fault{leasefault.FailAnswer, p.loseAnswer, leasefault.Duplicate} {
			a := p.world().join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, fault), leasefault.Nth(3, lease.ActionRenew, fault))
			a.acquire()
			all = append(all, a)
		}
		for range 80 {
			p.pass(p.D / 20)
			for _, a := range all {
				a.alive("after the answer to a renewal was lost")
				a.lostSoFar(0)
			}
		}
	}},
	{"H11/a-refusal-that-shows-the-own-ID-is-no-loss", "a refusal whose record shows the holder's ID in force is not a loss", CanUseAuthority | CanShowRecords, func(p *probe) {
		w := p.world()
		var n atomic.Int32
		w.answer(func(req lease.Request, _ *lease.Result, err *error) {
			if req.Action != lease.ActionRenew {
				return
			}
			if n.Add(1) == 2 {
				*err = &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrIDMismatch}
			}
		})
		a := w.join(Holder{Owner: "a"})
		a.acquire()
		a.aliveFor(3*p.D, "after a refusal that shows its ID in force")
		a.lostSoFar(0)
	}},
	{"H11/a-refusal-is-a-loss", "a renewal that is refused because another has the lease is a loss at once", canRevoke, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		w.revoke(0)
		b.acquire()
		p.pass(p.D/2 + p.Slack)
		a.dead("after its renewal was refused")
		a.requireLostError(a.requireLosses(1), tok, append(w.revokeReasons(), lease.ErrIDMismatch, lease.ErrOver)...)
		b.aliveFor(2*p.D, "after it followed another")
		a.lostSoFar(1)
	}},
	{"H11/an-outage-is-no-loss", "a holder that is cut off for less than the rest of its belief keeps the lease", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		for range 6 {
			p.pass(time.Duration(p.rand.Int64N(int64(p.D / 3)))) // a renewal falls into most of the outages
			a.cut()
			a.aliveFor(p.D/4, "while it was cut off")
			a.mend()
			a.aliveFor(p.D/2, "after it was cut off for a quarter of the duration")
		}
		if again := a.acquire(); again != tok {
			p.Errorf("the token was %q, and is %q", tok, again)
		}
		a.lostSoFar(0)
	}},
	{"H11/renewals-are-spread", "holders that began together do not renew together", CanUseAuthority | exactTime, func(p *probe) {
		const crowd = 20
		w := p.world()
		var all []*contender
		for i := range crowd {
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"})
			a.acquire()
			all = append(all, a)
		}
		p.pass(4 * p.D)
		instants := map[time.Time]int{}
		for _, a := range all {
			renewals := a.requests.sentOf(lease.ActionRenew)
			if len(renewals) < 8 {
				p.Fatalf("%d renewals in 4 durations", len(renewals))
			}
			instants[renewals[7].at]++
		}
		if len(instants) < crowd/2 {
			p.Errorf("%d holders that began together made their eighth renewals in %d instants", crowd, len(instants))
		}
	}},
	{"H12/a-renewal-resurrects-nothing", "a renewal that is carried out after the loss revives nothing, and its lease is released", CanUseAuthority, func(p *probe) {
		w := p.world()
		began := time.Now()
		a := w.join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, func(ctx context.Context, c *leasefault.Call) error {
			if time.Since(began) < p.D*9/10 {
				return leasefault.FailRequest(ctx, c)
			}
			return leasefault.DelayRequest(p.D/7)(ctx, c) // the request arrives after the lease has ended
		}))
		a.acquire()
		p.pass(p.D - time.Since(a.sentAt(lease.ActionAcquire, 1)))
		a.deadFor(p.D/2, "after it was lost")
		a.requireLosses(1)
		p.pass(p.D / 4)
		a.dead("after it was lost")
		w.unlocked("after a renewal that came too late")
	}},
	{"H12/a-stale-renewal-resurrects-nothing", "a copy of a renewal that arrives after the release brings nothing back", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a := w.join(Holder{Owner: "a"}, leasefault.Nth(2, leasefault.Any, leasefault.Repeat(p.TB, gate.HoldRequest)))
		a.acquire()
		p.pass(p.D / 2)
		p.need(a.release(), "release")
		gate.Open()
		p.pass(p.D / 20)
		w.unlocked("after a release, though a copy of a renewal came later")
		a.deadFor(p.D, "after its release")
		a.lostSoFar(0)
	}},
	{"H19/every-incarnation-is-renewed", "an incarnation that begins right after another one is renewed like any other", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		for range 5 {
			a.acquire()
			p.pass(p.D / 10)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.aliveFor(3*p.D, "after it was acquired right after a release")
		a.lostSoFar(0)
	}},
	{"H19/a-refusal-reaches-no-later-incarnation", "a refused renewal of an earlier incarnation is not a loss of a later one", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.waitReached(gate)
		p.need(a.release(), "release")
		a.acquire()
		gate.Open()
		a.aliveFor(3*p.D, "after the renewal of an earlier incarnation was refused")
		a.lostSoFar(0)
	}},
	{"H19/an-answer-revives-no-other-incarnation", "the answer to a renewal of an incarnation that was released brings nothing back", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContextOfAnswer(gate))), w.join(Holder{Owner: "b"})
		a.acquire()
		p.waitReached(gate)
		p.need(a.release(), "release")
		b.acquire()
		gate.Open()
		a.deadFor(2*p.D, "after the answer to a renewal of what was released")
		b.alive("after an answer to another")
		a.lostSoFar(0)
	}},
	{"H19/an-answer-prolongs-no-other-incarnation", "the answer to a renewal of an earlier incarnation adds nothing to what a later one believes", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContextOfAnswer(gate)), leasefault.From(2, lease.ActionRenew, leasefault.FailRequest))
		a.acquire()
		p.waitReached(gate)
		p.pass(p.D / 20)
		p.need(a.release(), "release")
		a.acquire()
		sent := a.sentAt(lease.ActionAcquire, 2)
		p.pass(p.D / 2)
		gate.Open()
		p.pass(p.D - time.Since(sent))
		a.dead("a duration after it was acquired, with no renewal since")
	}},
	{"H19/calls-at-once-leave-nothing-behind", "after concurrent calls of all methods and a last release, the lease is not held", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, p.slow()), w.join(Holder{Owner: "b"})
		var plan [6][12]int
		for i := range plan {
			for n := range plan[i] {
				plan[i][n] = p.rand.IntN(8)
			}
		}
		p.together(len(plan), func(i int) {
			for _, what := range plan[i] {
				switch what {
				case 0, 1, 2, 3, 4:
					if _, ok, err := a.tryAcquire(p.ctx); !ok && err == nil {
						p.Errorf("Acquire returned false, nil, but no other holder has the lease")
					}
				case 5:
					_ = a.release()
				default:
					p.Sleep(p.Unit / 100)
					a.OnLost(func(error) {})()
					_ = a.CheckAlive()
				}
			}
		})
		p.need(a.release(), "a release after which nothing was called")
		b.acquire()
		a.deadFor(p.D, "after a last release")
		b.alive("after it followed")
		a.lostSoFar(0)
	}},
}
