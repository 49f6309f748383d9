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

var beliefRules = []rule{
	{"H9/false-from-the-end-on", "CheckAlive is false once the lease is no longer certain, even if no goroutine of the holder could run since", CanUseClock, func(p *tester) {
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
	{"H9/counted-from-the-sending", "the belief is counted from before the request, not from its answer", CanUseAuthority, func(p *tester) {
		for i, slow := range []leasefault.Line[lease.Action]{
			leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/12)),
			leasefault.Nth(1, lease.ActionRenew, leasefault.DelayAnswer(p.D/12)),
		} {
			w := p.worldOf(fmt.Sprint(p.name, i))
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
	{"H9/held-for-most-of-the-duration", "without renewals a holder believes for most of the duration", canStall, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.stall()
		p.pass(p.D * 9 / 10)
		a.requireAlive("when nine tenths of the duration are over")
	}},
	{"H9/counts-what-is-certain", "if MinRemaining is less than the duration asked for, the holder believes no longer than that", CanUseAuthority, func(p *tester) {
		for _, d := range []time.Duration{p.D, lease.Infinite} {
			if d == lease.Infinite && !p.can(CanBeInfinite) {
				continue
			}
			w := p.worldOf(fmt.Sprint(p.name, d))
			w.answer(func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining = min(res.MinRemaining, p.D/2) })
			a := w.join(Holder{Name: w.name, Owner: "a", Duration: d}, leasefault.From(1, lease.ActionRenew, leasefault.FailRequest))
			sent := time.Now()
			a.acquire()
			p.pass(p.D/2 - time.Since(sent))
			a.requireNotAlive("when nothing is sure any more")
			a.awaitLosses(1)
		}
	}},
	{"H9/counts-what-is-sure-of-a-renewal", "a renewal counts like a grant: for MinRemaining, no longer than the duration, less what the clocks may differ", CanUseAuthority, func(p *tester) {
		for i, c := range []struct {
			what string
			sure func(sure time.Duration) time.Duration
			most time.Duration
		}{
			{"half the duration is sure", func(sure time.Duration) time.Duration { return sure / 2 }, p.D / 2},
			{"twice the duration is sure", func(sure time.Duration) time.Duration { return 2 * sure }, p.D},
			{"the duration is sure", func(sure time.Duration) time.Duration { return sure }, p.D - p.D/2000},
		} {
			w := p.worldOf(fmt.Sprint(p.name, i))
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
	{"H9/check-alive-sends-nothing", "CheckAlive makes no request and waits for none", canCut, func(p *tester) {
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
		p.settle()
		if n := len(a.requests.sentOf(leasefault.Any)); n > asked+1 {
			p.Errorf("100 calls made %d requests", n-asked)
		}
	}},
	{"H9/infinite-keeps-asking", "the holder of an infinite lease goes on asking, and learns that it was broken", canRevoke | CanBeInfinite | exactTime, func(p *tester) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		tok := a.acquire()
		a.requireAliveFor(time.Hour, "after it acquired forever")
		if n := len(a.requests.sentOf(leasefault.Any)); n < 10 && w.direct != nil {
			p.Errorf("it asked %d times in an hour", n)
		}
		w.revoke(0)
		p.pass(time.Minute)
		a.requireLost(1, "a minute after it was broken", tok, lease.ErrBroken)
	}},
	{"H9/confirmed-is-the-last-answer", "LastConfirmed returns when the request was sent whose answer last showed that the lease is held", hasLastConfirmed | canStall, func(p *tester) {
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
	{"H9/two-never-believe", "of holders that contend, and are kept from renewing if they can be, no two believe at the same time", 0, func(p *tester) {
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
	{"H10/a-clock-that-jumps-ends-the-belief", "a holder whose clock jumps ahead believes no longer than the clock says", CanUseClock, func(p *tester) {
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

var renewalRules = []rule{
	{"H11/held-as-long-as-it-is-renewed", "a lease that is not broken stays held, under the same token", 0, func(p *tester) {
		_, a, b := p.two()
		tok := a.acquire()
		for i := range 6 {
			if p.Bubble && i == 5 {
				a.requireAliveFor(100*p.D, "with nothing in its way")
			}
			a.requireAliveFor(p.D, "with nothing in its way")
			b.requireDenied("that another holds")
			a.requireToken(tok)
		}
		a.requireLosses(0)
	}},
	{"H11/one-renewal-at-a-time", "at most one renewal of each term is in flight that was not given up", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.pass(p.D * 3 / 2)
		if n := a.requests.maxInFlight(lease.ActionRenew); n != 1 {
			p.Errorf("%d renewals were in flight at once", n)
		}
	}},
	{"H11/two-renewals-of-all-terms-at-most", "at most two renewals that were not given up are in flight, though each is of a term of its own", CanUseAuthority | exactTime, func(p *tester) {
		for i := range 12 { // in some cases, the third term wants to renew before the holder has abandoned the first renewal
			a := p.world().join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.From(1, lease.ActionRenew, ignoreContext(p.gate())))
			for range 3 {
				if _, ok, _ := a.tryAcquire(p.ctx); !ok {
					break // two abandoned renewals have not returned
				}
				asked := len(a.requests.sentOf(lease.ActionRenew))
				for n := 0; n < 40 && len(a.requests.sentOf(lease.ActionRenew)) == asked; n++ {
					p.pass(p.D / 100)
				}
				_ = a.release() // fails while two abandoned renewals have not returned
			}
			renewals := a.requests.sentOf(lease.ActionRenew)
			for n, r := range renewals {
				open := 1
				for _, earlier := range renewals[:n] {
					ends, ok := earlier.ctx.Deadline()
					if !ok {
						p.Skipf("the renewals have no deadline, from which the rule knows when they are given up")
					}
					if r.at.Before(ends.Add(ends.Sub(earlier.at))) {
						open++
					}
				}
				if open > 2 {
					p.Errorf("holder %d has sent renewal %d, and %d are in flight", i, n+1, open)
				}
			}
		}
	}},
	{"H11/a-late-answer-ends-a-belief-and-prolongs-none", "the answer to a renewal that was given up does not prolong what the holder believes; if it is a refusal, the lease is lost, and if it shows a break, it is lost at the end of that", CanUseAuthority | CanBreak | CanShowRecords | exactTime, func(p *tester) {
		for _, what := range []string{"a grant", "a refusal", "a break"} {
			gate := p.gate()
			hold := ignoreContext(gate)
			if what == "a grant" {
				hold = ignoreContextOfAnswer(gate)
			}
			w := p.worldOf(p.name + what)
			a := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, hold), leasefault.From(2, lease.ActionRenew, leasefault.FailRequest))
			tok := a.acquire()
			ends := a.sentAt(lease.ActionAcquire, 1).Add(p.D)
			for a.stillAlive() && len(a.requests.sentOf(lease.ActionRenew)) < 2 {
				p.pass(p.D / 100)
			}
			if !a.CheckAlive() {
				p.Skipf("the holder gives no renewal up while it believes")
			}
			reasons := []lease.Code{lease.ErrBroken}
			switch what {
			case "a grant":
				reasons = []lease.Code{lease.ErrExpired}
			case "a refusal":
				w.revoke(0)
				ends = time.Now()
			case "a break":
				ends = time.Now().Add(time.Until(ends) / 2)
				w.revoke(time.Until(ends))
			}
			gate.Open()
			p.pass(max(p.D/1000, time.Until(ends)))
			a.requireLost(1, "at the end, after "+what+" as the late answer to a renewal that was given up", tok, reasons...)
		}
	}},
	{"H11/a-newer-token-under-the-own-ID-is-a-loss", "if the answer to a renewal shows the holder's ID in force with a newer token, the lease is lost: as over if that may be a late acquire of the holder, and else as taken-over", CanUseAuthority | CanShowRecords, func(p *tester) {
		for i, reason := range []lease.Code{lease.ErrTakenOver, lease.ErrEnded} {
			w := p.worldOf(fmt.Sprint(p.name, i))
			var early *leasefault.Call
			var lines []leasefault.Line[lease.Action]
			if reason == lease.ErrEnded {
				lines = append(lines, leasefault.Nth(1, lease.ActionAcquire, func(_ context.Context, c *leasefault.Call) error {
					early = c
					return leasefault.ErrInjected
				}))
			}
			a := w.join(Holder{Owner: "a"}, lines...)
			if reason == lease.ErrEnded {
				a.requireError(p.ctx, "that has not arrived yet")
			}
			tok := a.acquire()
			acquires := a.requests.sentOf(lease.ActionAcquire)
			id := acquires[len(acquires)-1].Proposed
			switch {
			case early == nil:
				_, err := w.direct.Do(p.ctx, w.name, acquire(id, p.D))
				p.history.printf("== another process acquires with the ID of a: %v", err)
				p.need(err, "acquire with the same ID")
			case acquires[0].Proposed != id:
				p.Skipf("the holder proposes another ID after an error")
			default:
				p.history.printf("== the first acquire of a arrives: %v", early.Send(context.WithoutCancel(p.ctx)))
			}
			p.pass(p.D/2 + p.Slack)
			a.requireLost(1, "after a renewal that showed its ID with a newer token", tok, reason)
		}
	}},
	{"H11/errors-are-retried", "a renewal that errs, hangs, or whose answer is lost is not a loss, whether or not it was carried out, and even if its error has the code conflict or corrupt: it is retried until the lease is no longer certain", CanUseAuthority, func(p *tester) {
		coded := func(code lease.Code) leasefault.Fault {
			return func(context.Context, *leasefault.Call) error {
				return &lease.OpError{Op: "renew", Name: p.name, Err: code}
			}
		}
		var all []*contender
		for i, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer, p.loseRequest, p.loseAnswer, leasefault.Duplicate, coded(lease.ErrConflict), coded(lease.ErrCorrupt)} {
			a := p.world().join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, fault), leasefault.Nth(3, lease.ActionRenew, fault))
			a.acquire()
			all = append(all, a)
		}
		for range 80 {
			p.pass(p.D / 20)
			for i, a := range all {
				a.requireAlive(fmt.Sprintf("after renewals that met fault %d", i+1))
				a.requireLosses(0)
			}
		}
	}},
	{"H11/a-refusal-that-shows-the-own-ID-is-no-loss", "a refusal whose record shows the holder's ID in force is not a loss, even if nothing is certain about the time that remains, and the lease is renewed again", CanUseAuthority | CanShowRecords, func(p *tester) {
		for _, certain := range []bool{true, false} {
			w := p.worldOf(fmt.Sprint(p.name, certain))
			var n atomic.Int32
			w.answer(func(req lease.Request, res *lease.Result, err *error) {
				if req.Action != lease.ActionRenew || n.Add(1) != 2 {
					return
				}
				*err = &lease.OpError{Op: "renew", Name: w.name, Err: lease.ErrIDMismatch}
				if !certain {
					res.MinRemaining = 0
				}
			})
			a := w.join(Holder{Owner: "a"})
			a.acquire()
			a.requireAliveFor(3*p.D, "after a refusal that shows its ID in force")
			a.requireLosses(0)
		}
	}},
	{"H11/a-refusal-is-a-loss", "a renewal that is refused because another has the lease is a loss at once", canRevoke, func(p *tester) {
		w, a, b := p.two()
		tok := a.acquire()
		w.revoke(0)
		b.acquire()
		p.pass(p.D/2 + p.Slack)
		a.requireLost(1, "after its renewal was refused", tok, append(w.revokeReasons(), lease.ErrIDMismatch, lease.ErrEnded)...)
		b.requireAliveFor(2*p.D, "after it followed another")
		a.requireLosses(1)
	}},
	{"H11/an-outage-is-no-loss", "a holder that is cut off for less than the rest of its belief keeps the lease", canCut, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		for range 6 {
			p.pass(time.Duration(p.rand.Int64N(int64(p.D / 3)))) // the pauses differ, so that most outages hit a renewal
			a.cut()
			a.requireAliveFor(p.D/4, "while it was cut off")
			a.mend()
			a.requireAliveFor(p.D/2, "after it was cut off for a quarter of the duration")
		}
		a.requireToken(tok)
		a.requireLosses(0)
	}},
	{"H11/first-renewals-are-spread", "holders that acquire together do not send their first renewals together, after a first acquire and after a later one", CanUseAuthority | exactTime, func(p *tester) {
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
			// A session.Session, for example, waits for a random part of the interval before its first
			// renewal: for at least a tenth of the interval, and at most the whole interval. It is very
			// unlikely that all of 20 holders wait for more than half of the longest delay: this happens in
			// one of 60,000 runs.
			delays := slices.Sorted(maps.Keys(instants))
			if first, last := delays[0], delays[len(delays)-1]; first > last/2 {
				p.Errorf("%d holders acquired together, and made their first renewals from %v to %v later", crowd, first, last)
			}
		}
	}},
	{"H12/a-renewal-resurrects-nothing", "a renewal that is carried out after the loss revives nothing, and its lease is released", CanUseAuthority, func(p *tester) {
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
	{"H12/a-late-renewal-is-released-though-a-release-failed", "a renewal that is carried out after the loss is released by its ID, even if every release before it failed", CanUseAuthority | exactTime, func(p *tester) {
		for i := range 8 {
			fault := []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer}[i%2]
			arrives := p.D * 31 / 30
			if i/2%2 == 1 {
				arrives = p.D * 7 / 5 // after the holder has abandoned the renewal
			}
			w := p.worldOf(fmt.Sprint(p.name, i))
			began := time.Now()
			var late, committed atomic.Bool
			a := w.join(Holder{Name: w.name, Owner: "a"},
				leasefault.Always(lease.ActionRenew, func(ctx context.Context, c *leasefault.Call) error {
					if time.Since(began) < p.D*8/10 || late.Swap(true) {
						return leasefault.FailRequest(ctx, c)
					}
					p.Sleep(arrives - time.Since(began))
					err := c.Send(context.WithoutCancel(ctx))
					committed.Store(true)
					if i >= 4 { // the answer is lost
						err = leasefault.ErrInjected
					}
					return err
				}),
				leasefault.Always(lease.ActionRelease, leasefault.If(func() bool { return !committed.Load() }, fault)))
			a.acquire()
			p.pass(arrives + p.D/15 - time.Since(began))
			a.requireNotAlive("after it was lost")
			if !committed.Load() {
				p.Skipf("the holder has sent no renewal late enough")
			}
			a.requireNotAliveFor(p.D*3/4, "after a renewal that came too late")
			w.requireFree("three quarters of a duration after a renewal that came too late")
			a.awaitLosses(1)
		}
	}},
	{"H19/a-refusal-reaches-no-later-term", "a refused renewal of an earlier term is not a loss of a later one", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.waitReached(gate)
		p.need(a.release(), "release")
		a.acquire()
		gate.Open()
		a.requireAliveFor(3*p.D, "after the renewal of an earlier term was refused")
		a.requireLosses(0)
	}},
	{"H19/a-late-refusal-reaches-no-later-term", "the answer to a renewal of an earlier term, which was refused between the two, is not a loss of the later one", CanUseAuthority | exactTime, func(p *tester) {
		for i, wait := range []time.Duration{0, p.D * 2 / 3} { // the second time, the answer comes after the holder has abandoned the renewal
			request, answer := p.gate(), p.gate()
			a := p.world().join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionRenew, leasefault.Chain(ignoreContext(request), ignoreContextOfAnswer(answer))))
			a.acquire()
			p.waitReached(request)
			p.need(a.release(), "release")
			request.Open() // the renewal reaches a lease that is free
			p.waitReached(answer)
			p.pass(wait)
			a.acquire()
			answer.Open()
			a.requireAliveFor(3*p.D, "after the holder got the refusal of a renewal of an earlier term")
			a.requireLosses(0)
		}
	}},
	{"H19/an-answer-prolongs-no-other-term", "the answer to a renewal of an earlier term adds nothing to what a later one believes", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		_, a := p.one(leasefault.Nth(1, lease.ActionRenew, ignoreContextOfAnswer(gate)), leasefault.From(2, lease.ActionRenew, leasefault.FailRequest))
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
}
