package leasetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

var abandonRules = []rule{
	{"H3/a-late-grant-is-undone", "the grant of an acquire that was abandoned is undone by its ID, after the attempt has settled, and never surfaces", CanUseAuthority, func(p *probe) {
		w := p.world()
		for i, fault := range []leasefault.Fault{
			leasefault.Detach(p.TB, leasefault.DelayRequest(p.D/10)), // it lands after the caller has gone
			leasefault.DelayAnswer(p.D / 10),
			leasefault.LoseAnswer,
		} {
			name := p.name
			p.name = fmt.Sprint(name, i) // a lease of its own
			a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, fault)), w.join(Holder{Owner: "b"})
			a.abandon(p.D / 20)
			a.deadFor(p.D/2, "after an acquire that was abandoned")
			w.unlocked("half a duration after an abandoned acquire")
			if a.requests.crossed {
				p.Errorf("a release was sent while the acquire was in flight")
			}
			a.lostSoFar(0)
			b.acquire()
			p.name = name
		}
	}},
	{"H3/attempts-do-not-overlap", "no acquire is sent while an earlier one, abandoned or not, is in flight", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.Detach(p.TB, gate.HoldRequest)))
		a.abandon(p.D / 40)
		a.abandon(p.D / 40)
		gate.Open()
		p.pass(p.D / 2)
		if n := a.requests.atOnce(lease.ActionAcquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.acquire()
	}},
	{"H3/undo-has-a-context-of-its-own", "the undoing of an abandoned acquire is not ended by the caller's context, and does not hang for ever", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10)), leasefault.Nth(1, lease.ActionRelease, leasefault.LoseRequest))
		a.abandon(p.D / 20)
		p.pass(2 * p.D)
		undos := a.requests.of(lease.ActionRelease)
		if len(undos) == 0 {
			p.Fatalf("nothing was undone")
		}
		if undos[0].done {
			p.Errorf("the undoing was sent under a context that was done already")
		}
		a.acquire()
	}},
	{"H3/an-infinite-orphan-is-settled", "an infinite lease whose acquire comes after its undoing does not stay with nobody", CanUseAuthority | CanBeInfinite, func(p *probe) {
		gate := p.gate()
		w := p.worldOver(leasefault.ScriptStore(memory.New(nil), leasefault.Nth(1, leasefault.Swap, leasefault.Detach(p.TB, gate.HoldRequest))))
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		a.abandon(p.D / 20)
		p.pass(10 * p.D)
		gate.Open()
		p.pass(10 * p.D)
		a.dead("after an acquire that was abandoned")
		w.unlocked("long after an abandoned acquire arrived")
	}},
	{"H4/a-grant-answered-too-late-is-an-error", "a grant that is answered when nothing is certain any more is an error, and undone", CanUseAuthority, func(p *probe) {
		w := p.world()
		w.answer(func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.ActionAcquire {
				res.MinRemaining = min(res.MinRemaining, p.D/20)
			}
		})
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10))), w.join(Holder{Owner: "b"})
		a.fails(p.ctx, "that was answered too late")
		a.deadFor(p.D/2, "after a grant that was answered too late")
		w.unlocked("half a duration after a grant that was answered too late")
		a.lostSoFar(0)
		b.acquire()
	}},
}

// abandon acquires under a context that ends after d.
func (p *contender) abandon(d time.Duration) {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, d)
	defer cancel()
	if err := p.fails(ctx, "that was abandoned"); !errors.Is(err, context.DeadlineExceeded) {
		p.w.Errorf("%s: the error is %v", p.who, err)
	}
}
