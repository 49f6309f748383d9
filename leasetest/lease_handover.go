package leasetest

import (
	"context"

	"github.com/fencedlease/lease"
)

var handOverRules = []rule{
	{"H14/hand-over", "a hand-over gives the lease to the receiver; the giver's incarnation ends without OnLost, and nobody comes between", HandingOver | Changing, func(p *probe) {
		w := p.world()
		a, b, c := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"}), w.join(Holder{Owner: "c"})
		old := a.acquire()
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		a.dead("after it handed over")
		c.denied("that was handed to another")
		if tok := b.acquire(); p.Lacks&Tokens == 0 && tok.Compare(old) <= 0 {
			p.Errorf("the receiver's token is %q, and the giver's was %q", tok, old)
		}
		b.aliveFor(2*p.D, "after it was given the lease")
		a.dead("after it handed over")
		a.toldSoFar(0)
	}},
	{"H14/a-refused-hand-over-is-an-error", "a hand-over that the authority refuses is an error, and gives nobody the lease", HandingOver | Changing | revoking, func(p *probe) {
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
	{"H14/what-is-not-held-is-not-handed-over", "a hand-over of what is not held is an error and changes nothing", HandingOver | Changing, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		b.acquire()
		if err := a.giver().HandOver(p.ctx, p.id()); err == nil {
			p.Errorf("a hand-over of what another holds returned nil")
		}
		b.aliveFor(p.D, "after another handed over what it did not hold")
	}},
}

// A giver hands over, and tells the ID that it proposes.
type giver interface {
	HandOver(ctx context.Context, to lease.ID) error
	ID() lease.ID
}

func (p *party) giver() giver {
	p.w.Helper()
	g, ok := p.Lease.(giver)
	if !ok {
		p.w.Fatalf("it has no methods HandOver and ID; it should lack HandingOver")
	}
	return g
}
