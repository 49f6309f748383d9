package leasetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// beliefRules check CheckAlive.
var beliefRules = []rule{
	{"H9/false-from-the-end-on", "CheckAlive is false once the lease is no longer certain, even if no goroutine of the holder could run since", CanUseClock, func(p *probe) {
		w := p.world()
		clock := leasefault.NewClock()
		a, b := w.join(Holder{Owner: "a", Clock: clock}), w.join(Holder{Owner: "b"})
		a.acquire()
		clock.Pause()
		p.pass(p.D + p.Slack)
		a.dead("a duration after its last renewal")
		b.acquire()
		clock.Resume()
		p.pass(p.D / 4)
		a.dead("after another has acquired")
		b.aliveFor(2*p.D, "after it followed a holder that had paused")
		a.requireLosses(1)
	}},
	{"H9/counted-from-the-sending", "the belief is counted from before the request, not from its answer", CanUseAuthority, func(p *probe) {
		for i, slow := range []leasefault.Line[lease.Action]{
			leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/12)),
			leasefault.Nth(1, lease.ActionRenew, leasefault.DelayAnswer(p.D/12)),
		} {
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			a := w.join(Holder{Name: w.name, Owner: "a"}, slow, leasefault.From(1+i, lease.ActionRenew, leasefault.FailRequest))
			a.acquire()
			p.pass(p.D * 6 / 10)
			sent := a.sentAt(lease.ActionAcquire, 1)
			if i == 1 {
				sent = a.sentAt(lease.ActionRenew, 1)
			}
			p.pass(p.D*98/100 - time.Since(sent))
			for time.Since(sent) < p.D {
				if a.CheckAlive() && !w.now().State.Locked() {
					a.dead("when the authority has it no longer")
				}
				p.pass(p.D / 500)
			}
			a.dead("a duration after the last request that was granted was sent")
		}
	}},
	{"H9/held-for-most-of-the-duration", "without renewals a holder believes for most of the duration", canStall, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.stall()
		p.pass(p.D * 9 / 10)
		a.alive("when nine tenths of the duration are over")
	}},
	{"H9/counts-what-is-certain", "if MinRemaining is less than the duration asked for, the holder believes no longer than that", CanUseAuthority, func(p *probe) {
		w := p.world()
		w.answer(func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining = min(res.MinRemaining, p.D/2) })
		a := w.join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
		sent := time.Now()
		a.acquire()
		p.pass(p.D/2 - time.Since(sent))
		a.dead("when nothing is sure any more")
		a.requireLosses(1)
	}},
	{"H9/counts-what-is-sure-of-a-renewal", "a renewal counts like a grant: for MinRemaining, no longer than the duration, less what the clocks may differ", CanUseAuthority, func(p *probe) {
		for i, c := range []struct {
			what string
			sure func(sure time.Duration) time.Duration
			most time.Duration
		}{
			{"half the duration is sure", func(sure time.Duration) time.Duration { return sure / 2 }, p.D / 2},
			{"twice the duration is sure", func(sure time.Duration) time.Duration { return 2 * sure }, p.D},
			{"the duration is sure", func(sure time.Duration) time.Duration { return sure }, p.D - p.D/2000},
		} {
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			w.answer(func(req lease.Request, res *lease.Result, _ *error) {
				if req.Action == lease.ActionRenew {
					res.MinRemaining = c.sure(res.MinRemaining)
				}
			})
			a := w.join(Holder{Name: w.name, Owner: "a"}, leasefault.From(2, lease.ActionRenew, leasefault.FailRequest))
			a.acquire()
			for deadline := time.Now().Add(p.D); len(a.requests.sentOf(lease.ActionRenew)) == 0 && time.Now().Before(deadline); {
				p.pass(p.D / 100)
			}
			renewals := a.requests.sentOf(lease.ActionRenew)
			if len(renewals) == 0 {
				p.Fatalf("no renewal in a duration")
			}
			p.pass(c.most - time.Since(renewals[0].at))
			a.dead(fmt.Sprintf("%v after its only renewal was sent, of which %s", c.most, c.what))
			a.requireLosses(1)
		}
	}},
	{"H9/counts-what-was-asked-for", "if MinRemaining is more than the duration asked for, the holder believes no longer than the duration", CanUseAuthority, func(p *probe) {
		w := p.world()
		w.answer(func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining *= 2 })
		a := w.join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
		sent := time.Now()
		a.acquire()
		p.pass(p.D - time.Since(sent))
		a.dead("a duration after it was sent")
	}},
	{"H9/check-alive-sends-nothing", "CheckAlive makes no request and waits for none", canCut, func(p *probe) {
		var hang atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, leasefault.Always(leasefault.Any, leasefault.If(hang.Load, p.loseRequest)))
		a.acquire()
		hang.Store(true)
		a.orCut()
		p.pass(p.D / 2) // meanwhile a renewal blocks
		asked, began := len(a.requests.sentOf(leasefault.Any)), time.Now()
		for range 100 {
			a.alive("half a duration after it acquired")
		}
		if took := time.Since(began); took > p.Slack {
			p.Errorf("100 calls took %v", took)
		}
		if n := len(a.requests.sentOf(leasefault.Any)); n > asked+1 {
			p.Errorf("100 calls made %d requests", n-asked)
		}
	}},
	{"H9/clock-rates", "the belief is true even if the authority's clock is faster than the holder's by as much as is allowed", CanUseAuthority, func(p *probe) {
		clock := leasefault.NewClock()
		clock.Rate(1.001 / 0.999)
		w := p.worldOver(leasefault.Skew(memory.New(nil), clock))
		a := w.join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
		a.acquire()
		p.pass(p.D * 99 / 100)
		for range 100 {
			if a.CheckAlive() && !w.now().State.Locked() {
				a.dead("when the authority has it no longer")
			}
			p.pass(p.D / 5000)
		}
	}},
	{"H9/infinite-keeps-asking", "the holder of an infinite lease goes on asking, and learns that it was broken", canRevoke | CanBeInfinite | exactTime, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		tok := a.acquire()
		a.aliveFor(time.Hour, "after it acquired forever")
		if n := len(a.requests.sentOf(leasefault.Any)); n < 10 && w.direct != nil {
			p.Errorf("it asked %d times in an hour", n)
		}
		w.revoke(0)
		p.pass(time.Minute)
		a.dead("a minute after it was broken")
		a.requireLostError(a.requireLosses(1), tok, lease.ErrBroken)
	}},
	{"H9/confirmed-is-the-last-answer", "LastConfirmed returns when the request was sent whose answer last showed that the lease is held", hasLastConfirmed | canStall, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		holder := a.Lease.(confirmer)
		if at, ok := holder.LastConfirmed(); ok {
			p.Errorf("nothing is held, and confirmed at %s", timeText(at))
		}
		sent := time.Now()
		a.acquire()
		if at, ok := holder.LastConfirmed(); !ok || at.Before(sent) || at.After(time.Now()) {
			p.Errorf("acquired from %s to %s, and confirmed at %s", timeText(sent), timeText(time.Now()), timeText(at))
		}
		a.aliveFor(2*p.D, "with nothing in its way")
		if at, ok := holder.LastConfirmed(); !ok || time.Since(at) > p.D/2+p.Slack {
			p.Errorf("with nothing in its way it was last confirmed %v ago", time.Since(at))
		}
		a.stall()
		stalled := time.Now()
		p.pass(p.D / 3)
		if at, ok := holder.LastConfirmed(); !ok || at.After(stalled) {
			p.Errorf("nothing was heard since %s, and confirmed at %s", timeText(stalled), timeText(at))
		}
	}},
	{"H9/belief-is-never-false", "whatever the network does, a holder that believes is the holder at the authority", CanUseAuthority, func(p *probe) {
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
					p.loseRequest, p.loseAnswer, leasefault.FailRequest, leasefault.FailAnswer, leasefault.Duplicate, leasefault.DelayRequest(p.D/10), leasefault.DelayAnswer(p.D/8), leasefault.DelayAnswer(p.D/7),
					leasefault.Repeat(p.TB, leasefault.DelayRequest(p.D/3)), leasefault.Detach(p.TB, leasefault.DelayRequest(p.D/4))))))
			}
			held := 0
			// Run more steps if the network has blocked every acquire so far.
			for step := 0; step < steps || held == 0 && step < 10*steps; step++ {
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
				p.Errorf("no holder ever had the lease in round %d", round)
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
			p.Errorf("no holder ever had the lease")
		}
	}},
	{"H10/a-clock-that-jumps-ends-the-belief", "a holder whose clock jumps ahead believes no longer than the clock says", CanUseClock, func(p *probe) {
		clock := leasefault.NewClock()
		a := p.world().join(Holder{Owner: "a", Clock: clock})
		a.acquire()
		clock.Pause()
		clock.Step(p.D)
		a.dead("when its clock is a duration ahead")
		clock.Resume()
		a.requireLosses(1)
	}},
}
