package leasetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease/leasefault"
)

var excludeRules = []rule{
	{"H9/belief-is-never-false", "whatever the network does, a holder that believes has the lease at the authority", CanUseAuthority, func(p *probe) {
		rounds, steps := 10, 400
		if !p.Bubble {
			rounds, steps = 1, 150
		}
		for round := range rounds {
			w := p.world()
			w.name = fmt.Sprint(p.name, round)
			seed := p.rand.Uint64()
			p.history.printf("== round %d, seed %d", round, seed)
			var down atomic.Bool
			var all []*contender
			for i, who := range []string{"a", "b"} {
				all = append(all, w.join(Holder{Name: w.name, Owner: who}, leasefault.Always(leasefault.Any, leasefault.If(down.Load, leasefault.FailRequest)), leasefault.Always(leasefault.Any, leasefault.Random(seed+uint64(i), 0.5,
					leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailRequest, leasefault.FailAnswer, leasefault.Duplicate, leasefault.DelayRequest(p.D/10), leasefault.DelayAnswer(p.D/8), leasefault.DelayAnswer(p.D/7),
					leasefault.Repeat(p.TB, leasefault.DelayRequest(p.D/3)), leasefault.Detach(p.TB, leasefault.DelayRequest(p.D/4))))))
			}
			held := 0
			for step := 0; step < steps || held == 0 && step < 10*steps; step++ { // longer on a network that lets nobody through
				switch p.rand.IntN(60) {
				case 0, 1, 2, 3, 4, 5:
					_, _, _ = all[p.rand.IntN(2)].tryAcquire(p.ctx)
				case 6:
					_ = all[p.rand.IntN(2)].release()
				case 7, 8:
					down.Store(!down.Load())
				}
				for _, a := range all {
					if !a.CheckAlive() {
						continue
					}
					held++
					if r := w.now(); a.CheckAlive() && (!r.State.Locked() || r.ID != a.requests.proposed()) {
						p.Fatalf("%s believes, and the lease is %s", a.who, outcomeText(r, nil))
					}
				}
				p.pass(time.Duration(p.rand.Int64N(int64(p.D / 10))))
			}
			if held == 0 {
				p.Errorf("nobody ever held in round %d", round)
			}
			down.Store(false)
			for _, a := range all {
				_ = a.release()
			}
		}
	}},
	{"H9/two-never-believe", "of holders that contend, and are kept from renewing if they can be, no two believe at the same time", 0, func(p *probe) {
		w := p.world()
		steps := 300
		if !p.Bubble {
			steps = 60
		}
		var all []*contender
		for i := range 3 {
			all = append(all, w.join(Holder{Owner: fmt.Sprint("owner-", i)}))
		}
		held := 0
		for range steps {
			i := p.rand.IntN(len(all))
			ctx, cancel := context.WithTimeout(p.ctx, p.D/4)
			switch p.rand.IntN(9) {
			case 0, 1, 2, 3:
				_, _, _ = all[i].tryAcquire(ctx)
			case 4:
				_ = all[i].Release(ctx)
			case 5, 6:
				if all[i].mend(); p.can(canStall) {
					all[i].stall()
				}
			default:
				all[i].mend()
			}
			cancel()
			var believe []string
			for _, one := range all {
				if one.CheckAlive() {
					believe = append(believe, one.who)
				}
			}
			if len(believe) > 1 {
				p.Fatalf("%v believe at the same time", believe)
			}
			held += len(believe)
			p.pass(time.Duration(p.rand.Int64N(int64(p.D / 3))))
		}
		if held == 0 {
			p.Errorf("nobody ever held")
		}
	}},
}
