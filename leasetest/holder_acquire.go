package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/leasefault"
)

var acquireRules = []rule{
	{"H1/granted-is-held", "an acquire that returns true holds now", 0, func(p *tester) {
		p.world().join(Holder{Owner: "a"}).acquire()
	}},
	{"H1/held-by-another-is-false", "while another holder has the lease, an acquire returns false at once without an error and has no effect", 0, func(p *tester) {
		_, a, b := p.two()
		a.acquire()
		began := time.Now()
		b.requireDenied("that another holds")
		if took := time.Since(began); took > p.Slack {
			p.Errorf("it took %v", took)
		}
		a.requireAliveFor(2*p.D, "after another tried")
		b.requireLosses(0)
	}},
	{"H1/unknown-is-an-error", "an acquire with an unknown outcome returns an error, and CheckAlive stays false", canCut, func(p *tester) {
		w := p.world()
		for i, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer, p.loseRequest, p.loseAnswer} {
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, fault))
			a.cutWithoutScript()
			a.requireError(p.ctx, "whose outcome is unknown")
			a.requireNotAliveFor(p.D, "after an acquire of unknown outcome")
			a.requireLosses(0)
		}
	}},
	{"H1/other-refusals-are-errors", "a refusal that does not say that another has the lease is an error", CanUseAuthority, func(p *tester) {
		w := p.world()
		codes := []lease.Code{lease.ErrEpochLimit, lease.ErrDuration, lease.ErrConflict, lease.ErrCorrupt}
		for i := range 2 * len(codes) {
			code, shown := codes[i/2], i%2 == 1
			direct := w.direct
			w.answer(func(req lease.Request, res *lease.Result, err *error) {
				if req.Action == lease.ActionAcquire {
					// The holder gets a refusal even if the authority has granted the acquire. Because the
					// lease must be free after a refusal, the rule releases it.
					released, _ := direct.Do(p.ctx, fmt.Sprint(p.name, i), release(req.Proposed))
					*res, *err = lease.Result{}, &lease.OpError{Op: "acquire", Name: p.name, Err: code}
					if shown {
						res.Record, res.Now = lease.Record{Epoch: released.Record.Epoch}, released.Now
					}
				}
			})
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"})
			if err := a.requireError(p.ctx, "that is refused as "+code.String()); lease.CodeOf(err) != code {
				p.Errorf("the error is %v", err)
			}
			a.requireNotAliveFor(p.D/2, "after a refusal")
			w.direct = direct
		}
	}},
	{"H1/the-record's-duration-counts", "a lease stays locked for the duration that its holder was granted, whatever the duration of the next holder", canStall, func(p *tester) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: 3 * p.D})
		b := w.join(Holder{Owner: "b"})
		a.acquire()
		a.stall()
		p.pass(2 * p.D)
		b.requireDenied("that was granted for longer than its own duration")
		p.pass(p.D + p.Slack/4)
		b.acquire()
	}},
	{"H1/one-of-many-wins", "of many holders that acquire at the same time one gets the lease, and acquire of the others returns false", 0, func(p *tester) {
		w := p.world()
		var all []*contender
		for i := range 8 {
			all = append(all, w.join(Holder{Owner: fmt.Sprint("owner-", i)}))
		}
		for range 3 {
			var wins atomic.Int32
			p.callConcurrently(len(all), func(i int) {
				_, ok, err := all[i].tryAcquire(p.ctx)
				if err != nil {
					p.Errorf("%s: Acquire: %v", all[i].who, err)
				}
				if ok {
					wins.Add(1)
				}
			})
			alive := 0
			for _, one := range all {
				if one.CheckAlive() {
					alive++
					p.need(one.release(), "release")
				}
			}
			if n := wins.Load(); n != 1 || alive != 1 {
				p.Fatalf("Acquire returned true %d times, and %d believe", n, alive)
			}
		}
	}},
	{"H2/done-context-makes-no-request", "an acquire under a context that is done makes no request and returns the context's error", 0, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		ctx := p.doneContext()
		if err := a.requireError(ctx, "under a done context"); !errors.Is(err, context.Canceled) {
			p.Errorf("the error is %v", err)
		}
		p.settle()
		if n := len(a.requests.sentOf(leasefault.Any)); n != 0 {
			p.Errorf("%d requests were made", n)
		}
		a.acquire()
	}},
	{"H2/contexts-that-end-meanwhile", "an acquire whose context ends meanwhile holds, or leaves nothing behind: no later one returns that another holder has the lease", 0, func(p *tester) {
		_, a, b := p.two(p.slow())
		began := time.Now()
		a.acquire()
		took := time.Since(began)
		p.need(a.release(), "release")
		for i := range 60 {
			ctx := p.endingAfter(took*time.Duration(i)/30, i)
			switch _, ok, err := a.tryAcquire(ctx); {
			case ok:
				p.need(a.release(), "release")
			case err == nil:
				p.Fatalf("Acquire %d returned false, nil, but no other holder has the lease", i+1)
			}
			<-ctx.Done()
		}
		a.requireNotAliveFor(p.D/2, "after acquires whose contexts ended")
		a.requireLosses(0)
		b.acquire()
	}},
	{"H4/a-grant-answered-too-late-is-an-error", "a grant whose answer arrives when the lease is no longer certain is an error, and is undone", CanUseAuthority, func(p *tester) {
		w := p.world()
		w.answer(func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.ActionAcquire {
				res.MinRemaining = min(res.MinRemaining, p.D/20)
			}
		})
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10))), w.join(Holder{Owner: "b"})
		a.requireError(p.ctx, "that was answered too late")
		a.requireNotAliveFor(p.D/2, "after a grant that was answered too late")
		w.requireFree("half a duration after a grant that was answered too late")
		a.requireLosses(0)
		b.acquire()
	}},
	{"H5/acquire-while-holding-sends-nothing", "an acquire while holding makes no request and returns the token that is held", 0, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		action := lease.ActionAcquire
		if p.can(exactTime) { // so that the holder sends no renewal while the rule counts requests
			p.pass(0)
			action = leasefault.Any
		}
		asked := len(a.requests.sentOf(action))
		for range 3 {
			a.requireToken(tok)
		}
		if p.can(exactTime) {
			p.pass(0)
		} else {
			p.settle()
		}
		if n := len(a.requests.sentOf(action)); n != asked {
			p.Errorf("%d more requests were sent", n-asked)
		}
	}},
	{"H5/contexts-of-acquire-end-no-holding", "the context of an acquire does not end the lease that is held, and neither does that of an acquire while holding", 0, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		ctx, cancel := context.WithCancel(p.ctx)
		if _, ok, err := a.tryAcquire(ctx); !ok {
			p.Fatalf("Acquire: %v, %v", ok, err)
		}
		if _, ok, err := a.tryAcquire(ctx); !ok {
			p.Fatalf("Acquire while holding: %v, %v", ok, err)
		}
		cancel()
		a.requireAliveFor(3*p.D, "after the context of its acquire was cancelled")
		a.requireLosses(0)
	}},
	{"H5/acquires-at-once-are-one-term", "calls of acquire at the same time on one lease get the same term", 0, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayRequest(p.D/20)))
		tokens := make([]lease.Token, 8)
		p.callConcurrently(len(tokens), func(i int) {
			var ok bool
			var err error
			if tokens[i], ok, err = a.tryAcquire(p.ctx); !ok {
				p.Errorf("Acquire: %v, %v", ok, err)
			}
		})
		for _, tok := range tokens {
			if tok != tokens[0] {
				p.Errorf("one call has the token %q, and another %q", tokens[0], tok)
			}
		}
		if n := a.requests.maxInFlight(lease.ActionAcquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.requireAliveFor(2*p.D, "after acquires at once")
	}},
}

// idRules check the IDs of a holder, and take-overs.
var idRules = []rule{
	{"H3/a-late-grant-is-undone", "the grant of an abandoned acquire is released by its ID after the attempt has settled, and is never believed", CanUseAuthority, func(p *tester) {
		w := p.world()
		for i, fault := range []leasefault.Fault{
			leasefault.Detach(p.TB, leasefault.DelayRequest(p.D/10)), // the acquire arrives after the caller has returned
			leasefault.DelayAnswer(p.D / 10),
			p.loseAnswer,
		} {
			name := p.name
			p.name = fmt.Sprint(name, i) // each fault gets a lease of its own
			a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, fault)), w.join(Holder{Owner: "b"})
			a.abandon(p.D / 20)
			a.requireNotAliveFor(p.D/2, "after an acquire that was abandoned")
			w.requireFree("half a duration after an abandoned acquire")
			if a.requests.crossed {
				p.Errorf("a release was sent while the acquire was in flight")
			}
			a.requireLosses(0)
			b.acquire()
			p.name = name
		}
	}},
	{"H3/a-grant-long-after-giving-up-is-undone", "the grant of an acquire that was given up is released by its ID, however late its request returns, also after a release", CanUseAuthority, func(p *tester) {
		for i := range 3 {
			gate := p.gate()
			w := p.worldOf(fmt.Sprint(p.name, i))
			lines := []leasefault.Line[lease.Action]{leasefault.Nth(1, lease.ActionAcquire, ignoreContext(gate))}
			if i == 2 { // the acquire arrives when a release has been decided, but not answered
				lines = append(lines, leasefault.Always(lease.ActionRelease, func(ctx context.Context, c *leasefault.Call) error {
					err := c.Send(ctx)
					gate.Open()
					p.Sleep(p.D / 20)
					return err
				}))
			}
			a := w.join(Holder{Name: w.name, Owner: "a"}, lines...)
			a.abandon(p.D / 20)
			for n := 0; n < 100 && (i < 2 || len(a.requests.sentOf(lease.ActionRelease)) == 0); n++ {
				p.pass(p.D / 50) // meanwhile the holder abandons the request, and may release the lease
			}
			if i >= 1 {
				ctx, cancel := context.WithTimeout(p.ctx, p.D/2)
				_ = a.Release(ctx)
				cancel()
			}
			gate.Open() // the abandoned acquire arrives
			p.pass(p.D / 2)
			w.requireFree("half a duration after an abandoned acquire arrived")
			a.requireNotAlive("after an acquire that was abandoned")
			a.requireLosses(0)
		}
	}},
	{"H3/a-grant-that-breaks-is-undone", "if an acquire was granted without an answer, and its lease is breaking, a later acquire does not return that another holder has the lease, and the lease is released", CanUseAuthority | CanBreak, func(p *tester) {
		w, a := p.one(leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer))
		a.requireError(p.ctx, "whose answer was lost")
		if !w.now().State.Locked() {
			p.Skipf("the holder releases at once")
		}
		w.revoke(p.D * 9 / 10)
		switch _, ok, err := a.tryAcquire(p.ctx); {
		case ok: // the holder has released its earlier lease first
			p.need(a.release(), "release")
		case err == nil:
			p.Errorf("Acquire returned false, nil, but no other holder has the lease")
		}
		p.pass(p.D / 4)
		w.requireFree("a quarter of a duration after an acquire of an own lease that is breaking")
	}},
	{"H3/a-later-acquire-settles-no-earlier-one", "an acquire that is carried out long after its error is undone, though a later acquire under the same ID was refused and abandoned, or was granted and lost", CanUseAuthority | CanBreak, func(p *tester) {
		for i := range 2 {
			w := p.worldOf(fmt.Sprint(p.name, i))
			b := w.join(Holder{Name: w.name, Owner: "b"})
			var early *leasefault.Call
			arrives := func(ctx context.Context) { _ = early.Send(context.WithoutCancel(ctx)) }
			postpone := leasefault.Nth(1, lease.ActionAcquire, func(_ context.Context, c *leasefault.Call) error {
				early = c
				return leasefault.ErrInjected
			})
			refused := leasefault.Nth(2, lease.ActionAcquire, func(ctx context.Context, c *leasefault.Call) error {
				err := c.Send(ctx)
				p.Sleep(p.D / 10) // the caller does not wait for this answer
				p.need(b.release(), "release")
				arrives(ctx)
				return err
			})
			renewal := leasefault.Nth(1, lease.ActionRenew, func(ctx context.Context, c *leasefault.Call) error {
				err := c.Send(ctx)
				arrives(ctx)
				return err
			})
			a := w.join(Holder{Name: w.name, Owner: "a"}, postpone, []leasefault.Line[lease.Action]{refused, renewal}[i])
			if i == 0 {
				b.acquire()
			}
			a.requireError(p.ctx, "that has not arrived yet")
			if i == 0 {
				a.abandon(p.D / 20)
			} else {
				a.acquire()
				w.revoke(0)
				a.awaitLosses(1)
			}
			all := a.requests.sentOf(lease.ActionAcquire)
			if len(all) < 2 || all[0].Proposed != all[1].Proposed {
				p.Skipf("the holder proposes another ID after an error")
			}
			p.pass(p.D / 2)
			w.requireFree("half a duration after an acquire that was carried out late")
			a.requireNotAlive("after an acquire that was carried out late")
		}
	}},
	{"H3/attempts-do-not-overlap", "no acquire is sent while an earlier one, abandoned or not, is in flight", CanUseAuthority, func(p *tester) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.Detach(p.TB, gate.HoldRequest)))
		a.abandon(p.D / 40)
		a.abandon(p.D / 40)
		gate.Open()
		p.pass(p.D / 2)
		if n := a.requests.maxInFlight(lease.ActionAcquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.acquire()
	}},
	{"H6/each-term-has-its-ID", "no two terms have the same ID", CanUseAuthority, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		seen := map[lease.ID]bool{}
		for range 4 {
			a.acquire()
			a.requests.requireNewID(p, seen)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.requests.requireNewID(p, seen)
		a.loseNth(1)
		a.mend()
		a.acquireWithin(5, "after a loss")
		a.requests.requireNewID(p, seen)
	}},
	{"H6/unknown-does-not-exclude-itself", "after an acquire of unknown outcome the next one does not return that another holder has the lease", CanUseAuthority, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer))
		a.requireError(p.ctx, "whose answer was lost")
		a.acquireWithin(3, "after one whose answer was lost")
	}},
	{"H7/an-unsettled-release-is-an-error", "an acquire that finds its own earlier ID in force retries the release, and does not return that another holder has the lease", canCut, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.releaseInVain()
		a.requireNotAlive("after a release that erred")
		a.acquireWithin(3, "after a release that erred")
	}},
	{"H7/an-acquire-sends-no-deferred-release", "while work of a lost term is running, an acquire is an error and sends no release, and Wait does not return. Once the work has stopped, the lease can be acquired", CanUseAuthority | hasWhileHeld | exactTime, func(p *tester) {
		w := p.world()
		a := w.join(Holder{Owner: "a", TakeOver: p.can(CanTakeOver)}, leasefault.From(1, lease.ActionRenew, p.loseAnswer))
		a.acquire()
		_, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		p.pass(p.D)
		a.requireNotAlive("a duration after the last answer")
		if !w.now().State.Locked() {
			p.Skipf("the holder sent its last renewal so early that the lease has ended")
		}
		a.requireError(p.ctx, "while the work of the lost term runs")
		if waiter, ok := a.Lease.(lease.Waiter); ok {
			ctx, cancel := context.WithTimeout(p.ctx, p.D/50)
			defer cancel()
			if err := waiter.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				p.Errorf("while the work of the lost term ran, Wait returned %v", err)
			}
		}
		p.settle()
		if n := len(a.requests.sentOf(lease.ActionRelease)); n != 0 {
			p.Errorf("%d releases were sent while the work of the lost term ran", n)
		}
		giveBack()
		p.pass(p.D / 100)
		a.acquireWithin(3, "after the work of the lost term has stopped")
	}},
	{"H7/a-refused-release-may-show-another-own-ID", "if the refusal of a release shows that an earlier ID of the holder is in force, the holder releases that ID without a further call", CanUseAuthority | CanBreak | CanShowRecords | exactTime, func(p *tester) {
		gate := p.gate()
		w, a := p.one(leasefault.Nth(1, lease.ActionAcquire, leasefault.Detach(p.TB, gate.HoldRequest)))
		a.abandon(p.D / 20)
		early := a.requests.proposed()
		p.pass(2 * p.D) // during this pause, the holder releases the early ID
		a.acquire()
		w.revoke(0)
		gate.Open() // the abandoned acquire arrives
		p.pass(0)
		if r := w.now(); r.ID != early || !r.State.Locked() || len(a.lost.all()) != 0 {
			p.Skipf("the holder learned of the break before it released")
		}
		_ = a.release()
		p.pass(p.D / 4)
		w.requireFree("after a release whose refusal showed an earlier ID")
	}},
	{"H8/owners-exclude-themselves", "without take-over, equal owners exclude each other", 0, func(p *tester) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same"}), w.join(Holder{Owner: "same"})
		a.acquire()
		b.requireDenied("that another of the same owner holds")
		a.requireAliveFor(p.D, "after one of the same owner tried")
	}},
	{"H8/take-over", "with take-over a holder of the same owner gets the lease and outranks the earlier one, which loses it and never takes it back", CanTakeOver | CanChange, func(p *tester) {
		reasons := []lease.Code{lease.ErrTakenOver, lease.ErrIDMismatch, lease.ErrEnded, lease.ErrNotPresent}
		if p.can(CanUseAuthority | CanShowRecords) {
			reasons = reasons[:1] // the refusal of a renewal shows the record of the lease
		}
		for i, itself := range []bool{true, false} { // whether the earlier holder sets TakeOver, too
			w := p.worldOf(fmt.Sprint(p.name, i))
			a, b := w.join(Holder{Owner: "same", TakeOver: itself}), w.join(Holder{Owner: "same", TakeOver: true})
			old := a.acquire()
			if tok := b.acquire(); p.can(hasToken) && tok.Compare(old) <= 0 {
				p.Errorf("the token is %q, and that of the earlier holder %q", tok, old)
			}
			p.pass(p.D / 2)
			a.requireLost(1, "half a duration after it was taken over", old, reasons...)
			b.requireAliveFor(3*p.D, "after it has taken over")
			a.requireNotAlive("after it was taken over")
			a.requireLosses(1)
		}
	}},
	{"H8/take-over-spares-what-has-no-owner", "take-over takes nothing that has no owner", CanTakeOver | CanChange | CanUseAuthority, func(p *tester) {
		w := p.world()
		res, err := w.direct.Do(p.ctx, w.name, acquire(p.id(), p.D))
		p.need(err, "acquire of a free lease without an owner")
		a := w.join(Holder{Owner: "a", TakeOver: true})
		if _, held, _ := a.tryAcquire(p.ctx); held { // an error is allowed, because the authority may hide the owner
			p.Errorf("a lease without an owner was taken over")
		}
		if now := w.now(); now.ID != res.Record.ID || now.Epoch != res.Record.Epoch {
			p.Errorf("after an acquire with take-over there is %v, and there was %v", now, res.Record)
		}
	}},
	{"H8/owners-are-compared-exactly", "take-over takes nothing from an owner that differs in case, in spaces, in its Unicode form, or in invisible characters", CanTakeOver | CanChange, func(p *tester) {
		n := 0
		for _, owners := range [][2]string{
			{"worker-1", "Worker-1"}, {"worker-1", "worker-1 "}, {"worker-1", " worker-1"}, {"worker-1", "worker-10"}, {"worker 1", "worker  1"},
			{"Zo\u00eb", "Zoe\u0308"}, {"Zo\u00eb", "Zoe"}, {"stra\u00dfe", "strasse"}, {"worker-1", "worker-1\u200b"}, {"worker-1", "worker-\uff11"},
			{strings.Repeat("o", fields.MaxLabel-1) + "1", strings.Repeat("o", fields.MaxLabel-1) + "2"},
		} {
			for range 2 {
				n++
				w := p.worldOf(fmt.Sprint(p.name, n))
				a, b := w.join(Holder{Name: w.name, Owner: owners[0], TakeOver: true}), w.join(Holder{Name: w.name, Owner: owners[1], TakeOver: true})
				a.acquire()
				b.requireDenied("that another owner holds")
				p.need(a.release(), "release")
				owners[0], owners[1] = owners[1], owners[0]
			}
		}
	}},
	{"H8/take-over-spares-a-break", "take-over takes nothing that is breaking", CanTakeOver | CanChange | canRevoke | CanBreak, func(p *tester) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		w.revoke(p.D / 2)
		b.requireDenied("that is breaking")
		waiter, ok := b.Lease.(lease.Waiter)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(p.ctx, p.D/5)
		defer cancel()
		for n := 1; waiter.Wait(ctx) == nil; n++ {
			if n == 10 {
				p.Fatalf("a wait for a lease that is breaking has returned nil %d times in less than a fifth of a duration", n)
			}
		}
	}},
	{"H3/a-take-over-without-an-answer-is-undone", "a release after a take-over of unknown outcome gives up what that may have got", CanTakeOver | CanChange | CanUseAuthority, func(p *tester) {
		for i, fault := range []leasefault.Fault{leasefault.FailAnswer, p.loseAnswer} {
			w := p.worldOf(fmt.Sprint(p.name, i))
			a := w.join(Holder{Name: w.name, Owner: "same", TakeOver: true})
			b := w.join(Holder{Name: w.name, Owner: "same", TakeOver: true}, leasefault.Nth(1, lease.ActionChange, fault))
			a.acquire()
			_, _, _ = b.tryAcquire(p.ctx) // b may try again, and then hold the lease
			p.need(b.release(), "release")
			w.requireFree("after a release that followed a take-over of unknown outcome")
			b.requireNotAlive("after its release")
		}
	}},
	{"H8/take-over-needs-the-ID", "take-over from an authority that hides IDs is errors.ErrUnsupported", CanTakeOver | CanChange | CanUseAuthority, func(p *tester) {
		w := p.world()
		w.answer(func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil {
				res.Record.ID = lease.ID{}
			}
		})
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		if err := b.requireError(p.ctx, "that cannot take over"); !errors.Is(err, errors.ErrUnsupported) {
			p.Errorf("the error is %v", err)
		}
	}},
	{"H8/no-owner-is-an-owner-of-its-own", "no holder takes over a lease from a holder without an owner", CanTakeOver | CanChange, func(p *tester) {
		w := p.world()
		a, b, c := w.join(Holder{}), w.join(Holder{}), w.join(Holder{Owner: "c", TakeOver: true})
		a.acquire()
		b.requireDenied("that a holder without an owner holds")
		c.requireDenied("that a holder without an owner holds")
		a.requireAliveFor(p.D, "after others tried")
	}},
}

// abandon requires that an Acquire with the timeout d returns at this timeout (H2), even if its request
// ignores its context.
func (p *contender) abandon(d time.Duration) {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, d)
	defer cancel()
	began := time.Now()
	err := p.requireError(ctx, "that was abandoned")
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > d+p.w.Slack {
		p.w.Errorf("%s: the error is %v, after %v; the context ended after %v", p.who, err, took, d)
	}
}

// acquireWithin requires that one of at most n calls of Acquire is granted. Earlier calls must return errors.
func (p *contender) acquireWithin(n int, when string) {
	p.w.Helper()
	for range n {
		_, ok, err := p.tryAcquire(p.w.ctx)
		if ok {
			p.requireAlive("after an Acquire that was granted")
			return
		}
		if err == nil {
			p.w.Fatalf("%s: Acquire %s returned false, nil, but no other holder has the lease", p.who, when)
		}
		p.w.pass(p.w.D / 50)
	}
	p.w.Fatalf("%s: %d calls of Acquire %s were not granted", p.who, n, when)
}

// requireNewID requires that the last acquire has proposed a new ID. The map contains the IDs that were
// proposed before, and requireNewID adds the new ID to this map.
func (w *requestLog) requireNewID(p *tester, seen map[lease.ID]bool) {
	p.Helper()
	id := w.proposed()
	if seen[id] {
		p.Errorf("the ID %v was proposed again", id)
	}
	seen[id] = true
}
