package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

var handOverRules = []rule{
	{"H14/hand-over", "a hand-over gives the lease to the receiver; the giver's incarnation ends without OnLost, and nobody comes between", hasHandOver | CanChange, func(p *probe) {
		w := p.world()
		a, b, c := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"}), w.join(Holder{Owner: "c"})
		old := a.acquire()
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		a.dead("after it handed over")
		c.denied("that was handed to another")
		if tok := b.acquire(); p.can(hasToken) && tok.Compare(old) <= 0 {
			p.Errorf("the receiver's token is %q, and the giver's was %q", tok, old)
		}
		b.aliveFor(2*p.D, "after it was given the lease")
		a.dead("after it handed over")
		a.lostSoFar(0)
	}},
	{"H14/a-refused-hand-over-is-an-error", "a hand-over that the authority refuses is an error, and gives nobody the lease", hasHandOver | CanChange | canRevoke, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		w.revoke(0) // and a has not heard of it
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
		if n := len(a.requests.of(lease.ActionChange)); n != 0 {
			p.Errorf("%d changes were sent", n)
		}
		if a.CheckAlive() {
			b.denied("that was not handed over")
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
	{"H14/what-is-not-held-is-not-handed-over", "a hand-over of what is not held is an error and changes nothing", hasHandOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		b.acquire()
		if err := a.giver().HandOver(p.ctx, p.id()); err == nil {
			p.Errorf("a hand-over of what another holds returned nil")
		}
		b.aliveFor(p.D, "after another handed over what it did not hold")
	}},
}

func (p *contender) giver() handOverer { return p.Lease.(handOverer) }
