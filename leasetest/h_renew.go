package leasetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
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
		a.requireNotAlive("a duration after its last renewal")
		b.acquire()
		clock.Resume()
		p.pass(p.D / 4)
		a.requireNotAlive("after another has acquired")
		b.requireAliveFor(2*p.D, "after it followed a holder that had paused")
		a.awaitLosses(1)
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
					a.requireNotAlive("when the authority has it no longer")
				}
				p.pass(p.D / 500)
			}
			a.requireNotAlive("a duration after the last request that was granted was sent")
		}
	}},
	{"H9/held-for-most-of-the-duration", "without renewals a holder believes for most of the duration", canStall, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.stall()
		p.pass(p.D * 9 / 10)
		a.requireAlive("when nine tenths of the duration are over")
	}},
	{"H9/counts-what-is-certain", "if MinRemaining is less than the duration asked for, the holder believes no longer than that", CanUseAuthority, func(p *probe) {
		for _, d := range []time.Duration{p.D, lease.Infinite} {
			if d == lease.Infinite && !p.can(CanBeInfinite) {
				continue
			}
			w := p.world()
			w.name = fmt.Sprint(p.name, d)
			w.answer(func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining = min(res.MinRemaining, p.D/2) })
			a := w.join(Holder{Name: w.name, Owner: "a", Duration: d}, leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
			sent := time.Now()
			a.acquire()
			p.pass(p.D/2 - time.Since(sent))
			a.requireNotAlive("when nothing is sure any more")
			a.awaitLosses(1)
		}
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
			a.requireNotAlive(fmt.Sprintf("%v after its only renewal was sent, of which %s", c.most, c.what))
			a.awaitLosses(1)
		}
	}},
	{"H9/check-alive-sends-nothing", "CheckAlive makes no request and waits for none", canCut, func(p *probe) {
		var hang atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, leasefault.Always(leasefault.Any, leasefault.If(hang.Load, p.loseRequest)))
		a.acquire()
		hang.Store(true)
		a.cutWithoutScript()
		p.pass(p.D / 2) // a renewal blocks during this pause
		asked, began := len(a.requests.sentOf(leasefault.Any)), time.Now()
		for range 100 {
			a.requireAlive("half a duration after it acquired")
		}
		if took := time.Since(began); took > p.Slack {
			p.Errorf("100 calls took %v", took)
		}
		if n := len(a.requests.sentOf(leasefault.Any)); n > asked+1 {
			p.Errorf("100 calls made %d requests", n-asked)
		}
	}},
	{"H9/infinite-keeps-asking", "the holder of an infinite lease goes on asking, and learns that it was broken", canRevoke | CanBeInfinite | exactTime, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		tok := a.acquire()
		a.requireAliveFor(time.Hour, "after it acquired forever")
		if n := len(a.requests.sentOf(leasefault.Any)); n < 10 && w.direct != nil {
			p.Errorf("it asked %d times in an hour", n)
		}
		w.revoke(0)
		p.pass(time.Minute)
		a.requireNotAlive("a minute after it was broken")
		a.requireLostError(a.awaitLosses(1), tok, lease.ErrBroken)
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
		a.requireAliveFor(2*p.D, "with nothing in its way")
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
			// If no holder has had the lease after the given number of steps, the faults have
			// blocked every acquire, and the rule runs up to ten times as many steps.
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
		a.requireNotAlive("when its clock is a duration ahead")
		clock.Resume()
		a.awaitLosses(1)
	}},
}

// renewalRules check renewals.
var renewalRules = []rule{
	{"H11/held-as-long-as-it-is-renewed", "a lease that is not broken stays held, under the same token", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		for i := range 6 {
			if p.Bubble && i == 5 {
				a.requireAliveFor(100*p.D, "with nothing in its way")
			}
			a.requireAliveFor(p.D, "with nothing in its way")
			b.requireDenied("that another holds")
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		a.requireLosses(0)
	}},
	{"H11/one-renewal-at-a-time", "at most one renewal of each incarnation is in flight that was not given up", CanUseAuthority, func(p *probe) {
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
			a.requireAliveFor(4*p.D, "after a renewal hung")
			a.requireLosses(0)
		}
	}},
	{"H11/errors-are-retried", "an error of a renewal is not a loss: the renewal is retried until the lease is no longer certain", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.First(2, lease.ActionRenew, leasefault.FailRequest), leasefault.Nth(5, lease.ActionRenew, leasefault.FailRequest))
		a.acquire()
		a.requireAliveFor(4*p.D, "after a renewal erred")
		a.requireLosses(0)
	}},
	{"H11/an-error-with-a-code-is-retried", "an error of a renewal that has the code conflict or corrupt is not a loss, because its outcome is unknown", CanUseAuthority, func(p *probe) {
		w := p.world()
		var n atomic.Int32
		w.answer(func(req lease.Request, res *lease.Result, err *error) {
			if req.Action != lease.ActionRenew {
				return
			}
			switch n.Add(1) {
			case 2:
				*res, *err = lease.Result{}, &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrConflict}
			case 4:
				*res, *err = lease.Result{}, &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrCorrupt}
			}
		})
		a := w.join(Holder{Owner: "a"})
		a.acquire()
		a.requireAliveFor(4*p.D, "after an error with a code")
		a.requireLosses(0)
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
				a.requireAlive("after the answer to a renewal was lost")
				a.requireLosses(0)
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
		a.requireAliveFor(3*p.D, "after a refusal that shows its ID in force")
		a.requireLosses(0)
	}},
	{"H11/a-refusal-that-is-certain-of-nothing-is-no-loss", "a refusal whose record shows the holder's ID in force is not a loss, even if nothing is certain about the time that remains, and the lease is renewed again", CanUseAuthority | CanShowRecords | exactTime, func(p *probe) {
		w := p.world()
		var n atomic.Int32
		w.answer(func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRenew && n.Add(1) == 2 {
				res.MinRemaining, *err = 0, &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrIDMismatch}
			}
		})
		a := w.join(Holder{Owner: "a"})
		a.acquire()
		a.requireAliveFor(3*p.D, "after a refusal that shows its ID in force and is certain of nothing")
		a.requireLosses(0)
	}},
	{"H11/a-refusal-is-a-loss", "a renewal that is refused because another has the lease is a loss at once", canRevoke, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		w.revoke(0)
		b.acquire()
		p.pass(p.D/2 + p.Slack)
		a.requireNotAlive("after its renewal was refused")
		a.requireLostError(a.awaitLosses(1), tok, append(w.revokeReasons(), lease.ErrIDMismatch, lease.ErrOver)...)
		b.requireAliveFor(2*p.D, "after it followed another")
		a.requireLosses(1)
	}},
	{"H11/an-outage-is-no-loss", "a holder that is cut off for less than the rest of its belief keeps the lease", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		for range 6 {
			p.pass(time.Duration(p.rand.Int64N(int64(p.D / 3)))) // a renewal falls into most of the outages
			a.cut()
			a.requireAliveFor(p.D/4, "while it was cut off")
			a.mend()
			a.requireAliveFor(p.D/2, "after it was cut off for a quarter of the duration")
		}
		if again := a.acquire(); again != tok {
			p.Errorf("the token was %q, and is %q", tok, again)
		}
		a.requireLosses(0)
	}},
	{"H11/first-renewals-are-spread", "holders that acquire together do not send their first renewals together, after a first acquire and after a later one", CanUseAuthority | exactTime, func(p *probe) {
		const crowd = 20
		w := p.world()
		var all []*contender
		for i := range crowd {
			all = append(all, w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}))
		}
		for range 2 {
			began := time.Now()
			for _, a := range all {
				a.acquire()
			}
			p.pass(p.D)
			instants := map[time.Duration]bool{}
			for _, a := range all {
				for _, s := range a.requests.sentOf(lease.ActionRenew) {
					if !s.at.Before(began) {
						instants[s.at.Sub(began)] = true
						break
					}
				}
				p.need(a.release(), "release")
			}
			if len(instants) < crowd/2 {
				p.Errorf("%d holders acquired together, and made their first renewals in %d instants", crowd, len(instants))
			}
			// For example, a session.Session draws the delay of its first renewal from a tenth of
			// the interval to the whole interval. For 20 such delays, the probability that the
			// shortest exceeds half of the longest is about 1 in 60,000.
			delays := slices.Sorted(maps.Keys(instants))
			if first, last := delays[0], delays[len(delays)-1]; first > last/2 {
				p.Errorf("%d holders acquired together, and made their first renewals from %v to %v later", crowd, first, last)
			}
		}
	}},
	{"H11/an-earlier-renewal-frees-no-later-one", "a renewal of an earlier incarnation that returns while one of a later incarnation is in flight sends no second one", CanUseAuthority | exactTime, func(p *probe) {
		earlier, later := p.gate(), p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContextOfAnswer(earlier)), leasefault.Nth(2, lease.ActionRenew, later.HoldAnswer))
		a.acquire()
		p.waitReached(earlier)
		p.need(a.release(), "release")
		a.acquire()
		p.waitReached(later)
		earlier.Open()
		p.pass(p.D / 100)
		if n := len(a.requests.sentOf(lease.ActionRenew)); n != 2 {
			p.Errorf("%d renewals were sent, and the second is still in flight", n)
		}
		later.Open()
		a.requireAliveFor(p.D, "after its renewal was answered")
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
		a.requireNotAliveFor(p.D/2, "after it was lost")
		a.awaitLosses(1)
		p.pass(p.D / 4)
		a.requireNotAlive("after it was lost")
		w.requireFree("after a renewal that came too late")
	}},
	{"H12/an-answer-after-the-end-revives-nothing", "the answer to a renewal that arrives after the end of what is certain revives nothing, even if nothing had noticed the loss", CanUseAuthority | CanUseClock, func(p *probe) {
		clock, gate := leasefault.NewClock(), p.gate()
		began := time.Now()
		a := p.world().join(Holder{Owner: "a", Clock: clock}, leasefault.From(1, lease.ActionRenew, func(ctx context.Context, c *leasefault.Call) error {
			if time.Since(began) < p.D*7/10 {
				return leasefault.FailRequest(ctx, c)
			}
			return ignoreContextOfAnswer(gate)(ctx, c)
		}))
		a.acquire()
		p.waitReached(gate)
		clock.Pause()
		p.pass(p.D - time.Since(a.sentAt(lease.ActionAcquire, 1)))
		gate.Open() // a renewal has been granted, and its answer comes too late
		p.pass(p.Unit / 2)
		a.requireNotAlive("after the answer to a renewal came too late")
		clock.Resume()
		a.requireNotAliveFor(p.D/2, "after the answer to a renewal came too late")
		a.awaitLosses(1)
	}},
	{"H19/every-incarnation-is-renewed", "an incarnation that begins right after another one is renewed like any other", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		for range 5 {
			a.acquire()
			p.pass(p.D / 10)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.requireAliveFor(3*p.D, "after it was acquired right after a release")
		a.requireLosses(0)
	}},
	{"H19/a-refusal-reaches-no-later-incarnation", "a refused renewal of an earlier incarnation is not a loss of a later one", CanUseAuthority, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.waitReached(gate)
		p.need(a.release(), "release")
		a.acquire()
		gate.Open()
		a.requireAliveFor(3*p.D, "after the renewal of an earlier incarnation was refused")
		a.requireLosses(0)
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
		a.requireNotAlive("a duration after it was acquired, with no renewal since")
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
		p.callConcurrently(len(plan), func(i int) {
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
		a.requireNotAliveFor(p.D, "after a last release")
		b.requireAlive("after it followed")
		a.requireLosses(0)
	}},
}
