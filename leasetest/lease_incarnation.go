package leasetest

import (
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

var incarnationRules = []rule{
	{"H19/every-incarnation-is-renewed", "an incarnation that begins right after another is renewed as any", 0, func(p *probe) {
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
	{"H19/a-refusal-reaches-no-later-incarnation", "a renewal of an earlier incarnation that is refused is no loss of a later one", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.reach(gate)
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
		p.reach(gate)
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
		p.reach(gate)
		p.pass(p.D / 20)
		p.need(a.release(), "release")
		a.acquire()
		sent := a.sent(lease.ActionAcquire, 2)
		p.pass(p.D / 2)
		gate.Open()
		p.pass(p.D - time.Since(sent))
		a.dead("a duration after it was acquired, with no renewal since")
	}},
	{"H19/calls-at-once-leave-nothing-behind", "whatever is called at the same time, after a last release nothing is held, by anybody", 0, func(p *probe) {
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
						p.Errorf("Acquire returned false, nil: nobody else has it")
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
