package leasetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

var renewalRules = []rule{
	{"H11/held-as-long-as-it-is-renewed", "a lease that nobody breaks is held on and on, under the same token", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		for range 6 {
			a.aliveFor(p.D, "with nothing in its way")
			b.denied("that another holds")
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		a.toldSoFar(0)
	}},
	{"H11/one-renewal-at-a-time", "at most one renewal is in flight", Injecting, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, From(1, lease.Renew, deaf(gate)))
		a.acquire()
		p.pass(p.D * 3 / 2)
		if n := a.wire.atOnce(lease.Renew); n != 1 {
			p.Errorf("%d renewals were in flight at once", n)
		}
	}},
	{"H11/a-renewal-that-hangs-is-given-up", "an attempt to renew has a bound of its own, which leaves time for another", Injecting, func(p *probe) {
		for i, fault := range []Fault{LoseRequest, LoseAnswer} {
			w := p.world()
			a := w.join(Holder{Name: p.name + string(rune('0'+i)), Owner: "a"}, Nth(1, lease.Renew, fault), Nth(3, lease.Renew, fault))
			a.acquire()
			a.aliveFor(4*p.D, "after a renewal hung")
			a.toldSoFar(0)
		}
	}},
	{"H11/errors-are-retried", "an error of a renewal is no loss: it is tried again until what is certain ends", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, First(2, lease.Renew, FailRequest), Nth(5, lease.Renew, FailRequest))
		a.acquire()
		a.aliveFor(4*p.D, "after a renewal erred")
		a.toldSoFar(0)
	}},
	{"H11/a-lost-answer-is-no-loss", "a renewal that was carried out and lost its answer is no loss", Injecting, func(p *probe) {
		for i, fault := range []Fault{FailAnswer, LoseAnswer, Duplicate} {
			a := p.world().join(Holder{Name: p.name + string(rune('0'+i)), Owner: "a"}, Nth(1, lease.Renew, fault), Nth(3, lease.Renew, fault))
			a.acquire()
			a.aliveFor(4*p.D, "after the answer to a renewal was lost")
			a.toldSoFar(0)
		}
	}},
	{"H11/a-refusal-that-shows-the-own-ID-is-no-loss", "a refusal is held against the record that came with it: if it shows the holder's ID in force, nothing is lost", Injecting | Disclosing, func(p *probe) {
		w := p.world()
		var n atomic.Int32
		w.truth = Answer(w.truth, func(req lease.Request, _ *lease.Result, err *error) {
			if req.Action != lease.Renew {
				return
			}
			if n.Add(1) == 2 {
				*err = &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrIDMismatch}
			}
		})
		a := w.join(Holder{Owner: "a"})
		a.acquire()
		a.aliveFor(3*p.D, "after a refusal that shows its ID in force")
		a.toldSoFar(0)
	}},
	{"H11/a-refusal-is-a-loss", "a renewal that is refused because another has the lease is a loss at once", Injecting, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		_, err := w.truth.Do(p.ctx, p.name, release(a.wire.proposed()))
		p.need(err, "a release by a third party")
		b.acquire()
		p.pass(p.D/2 + p.Slack)
		a.dead("after its renewal was refused")
		a.lostError(a.told(1), tok, lease.ErrIDMismatch)
		b.aliveFor(2*p.D, "after it followed another")
		a.toldSoFar(1)
	}},
	{"H12/a-renewal-resurrects-nothing", "a renewal that is carried out after the loss brings nothing back, and what it holds is released", Injecting, func(p *probe) {
		w := p.world()
		began := time.Now()
		a := w.join(Holder{Owner: "a"}, From(1, lease.Renew, func(ctx context.Context, c *Call) error {
			if time.Since(began) < p.D*9/10 {
				return FailRequest(ctx, c)
			}
			return DelayRequest(p.D/7)(ctx, c) // it lands after the end
		}))
		a.acquire()
		p.pass(p.D - time.Since(began))
		a.deadFor(p.D/2, "after it was lost")
		a.told(1)
		p.pass(p.D / 4)
		a.dead("after it was lost")
		w.unlocked("after a renewal that came too late")
	}},
	{"H12/a-stale-renewal-resurrects-nothing", "a copy of a renewal that arrives after the release brings nothing back", Injecting, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a := w.join(Holder{Owner: "a"}, Nth(2, Any, Repeat(p.TB, gate.HoldRequest)))
		a.acquire()
		p.pass(p.D / 2)
		p.need(a.release(), "release")
		gate.Open()
		p.pass(p.D / 20)
		w.unlocked("after a release, though a copy of a renewal came later")
		a.deadFor(p.D, "after its release")
		a.toldSoFar(0)
	}},
	{"H19/every-incarnation-is-renewed", "an incarnation that begins right after another is renewed as any", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		for range 5 {
			a.acquire()
			p.pass(p.D / 10)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.aliveFor(3*p.D, "after it was acquired right after a release")
		a.toldSoFar(0)
	}},
	{"H19/a-refusal-reaches-no-later-incarnation", "a renewal of an earlier incarnation that is refused is no loss of a later one", Injecting, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Renew, deaf(gate)))
		a.acquire()
		p.reach(gate)
		p.need(a.release(), "release")
		a.acquire()
		gate.Open()
		a.aliveFor(3*p.D, "after the renewal of an earlier incarnation was refused")
		a.toldSoFar(0)
	}},
	{"H19/an-answer-revives-no-other-incarnation", "the answer to a renewal of an incarnation that was released brings nothing back", Injecting, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, Nth(1, lease.Renew, deafAnswer(gate))), w.join(Holder{Owner: "b"})
		a.acquire()
		p.reach(gate)
		p.need(a.release(), "release")
		b.acquire()
		gate.Open()
		a.deadFor(2*p.D, "after the answer to a renewal of what was released")
		b.alive("after an answer to another")
		a.toldSoFar(0)
	}},
	{"H19/an-answer-prolongs-no-other-incarnation", "the answer to a renewal of an earlier incarnation adds nothing to what a later one believes", Injecting, func(p *probe) {
		gate := p.gate()
		w := p.world()
		a := w.join(Holder{Owner: "a"}, Nth(1, lease.Renew, deafAnswer(gate)), From(2, lease.Renew, FailRequest))
		a.acquire()
		p.reach(gate)
		p.pass(p.D / 20)
		p.need(a.release(), "release")
		a.acquire()
		sent := a.wire.of(lease.Acquire)[1].at
		p.pass(p.D / 2)
		gate.Open()
		p.pass(p.D - time.Since(sent))
		a.dead("a duration after it was acquired, with no renewal since")
	}},
}

// deaf holds requests at the gate, of an authority that does not look at its context.
func deaf(g *Gate) Fault {
	return func(ctx context.Context, c *Call) error { return g.HoldRequest(context.WithoutCancel(ctx), c) }
}

// deafAnswer holds answers at the gate, whatever the context.
func deafAnswer(g *Gate) Fault {
	return func(ctx context.Context, c *Call) error { return g.HoldAnswer(context.WithoutCancel(ctx), c) }
}

// reach waits until a call is at the gate.
func (p *probe) reach(g *Gate) {
	p.Helper()
	select {
	case <-g.Reached():
	case <-time.After(p.D + p.patience()):
		p.Fatalf("the call that the rule waits for was not made")
	}
}
