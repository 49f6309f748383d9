package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
)

// breakRules check breaks and hand-overs.
var breakRules = []rule{
	{"H13/a-break-is-kept-to-its-end", "a holder keeps a lease that is breaking, under its token, until the break's certain end, and then loses it as broken", canRevoke | CanBreak | CanShowRecords, func(p *tester) {
		w, a := p.one()
		tok := a.acquire()
		w.revoke(p.D * 3 / 4)
		began := time.Now() // the break began before this time
		p.pass(p.D*7/10 - p.Slack)
		a.requireAlive("before the end of a break")
		a.requireToken(tok)
		for time.Since(began) < p.D*3/4 {
			if w.direct != nil && a.CheckAlive() && !w.now().State.Locked() {
				a.requireNotAlive("when the break is over")
			}
			p.pass(p.D / 200)
		}
		a.requireLost(1, "when the break is over", tok, lease.ErrBroken)
		p.pass(p.D)
		a.requireLosses(1)
	}},
	{"H13/a-break-of-an-infinite-lease-is-kept-to-its-end", "a holder keeps an infinite lease that is breaking until the break's certain end, and then loses it as broken", canRevoke | CanBreak | CanShowRecords | CanBeInfinite | noLimits | exactTime, func(p *tester) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		tok := a.acquire()
		w.revoke(time.Hour)
		a.requireAliveFor(time.Hour*9/10, "before the end of a break")
		p.pass(time.Hour / 10)
		a.requireLost(1, "when the break is over", tok, lease.ErrBroken)
	}},
	{"H13/an-immediate-break-is-a-loss", "a holder whose lease was broken at once loses it when it learns so", canRevoke, func(p *tester) {
		w, a := p.one()
		tok := a.acquire()
		w.revoke(0)
		p.pass(p.D/2 + p.Slack)
		a.requireLost(1, "half a duration after an immediate break", tok, w.revokeReasons()...)
	}},
	{"H13/a-break-of-unknown-end-is-a-loss", "if the answer does not show how long a break lasts, the lease is lost at once, even if it shows the record", CanUseAuthority | CanBreak, func(p *tester) {
		for i, hide := range []func(res *lease.Result){
			func(res *lease.Result) { *res = lease.Result{} },
			func(res *lease.Result) { res.MinRemaining = 0 },
		} {
			w := p.worldOf(fmt.Sprint(p.name, i))
			w.answer(func(req lease.Request, res *lease.Result, err *error) {
				if *err != nil || req.Action == lease.ActionRead {
					hide(res)
				}
			})
			a := w.join(Holder{Name: w.name, Owner: "a"})
			tok := a.acquire()
			w.revoke(p.D * 9 / 10)
			p.pass(p.D/2 + p.Slack)
			a.requireLost(1, "after it learned of a break whose end is not shown", tok, lease.ErrBroken)
		}
	}},
	{"H13/the-earliest-end-of-a-break-counts", "if a later answer about a break makes more certain than an earlier one, the lease is lost as broken at the end that the earlier one made certain", CanUseAuthority | CanBreak | CanShowRecords | exactTime, func(p *tester) {
		w := p.world()
		sure := p.D * 2 / 5 // longer than the interval between renewals
		var mu sync.Mutex
		var answers int
		var first time.Time
		w.answer(func(req lease.Request, res *lease.Result, err *error) {
			mu.Lock()
			defer mu.Unlock()
			if req.Action != lease.ActionRenew || *err == nil || res.Record.State != lease.Breaking {
				return
			}
			if answers++; answers == 1 {
				first = time.Now()
				res.MinRemaining = min(res.MinRemaining, sure)
			}
		})
		a := w.join(Holder{Owner: "a"})
		tok := a.acquire()
		w.revoke(p.D * 19 / 20)
		heard := func() (int, time.Time) {
			mu.Lock()
			defer mu.Unlock()
			return answers, first
		}
		for deadline := time.Now().Add(p.D / 2); time.Now().Before(deadline); p.pass(p.D / 100) {
			if n, _ := heard(); n > 0 {
				break
			}
		}
		n, at := heard()
		if n == 0 {
			p.Fatalf("the holder has not asked in half a duration")
		}
		p.pass(sure*3/4 - time.Since(at))
		a.requireAlive("before the end that the first answer made certain")
		p.pass(sure - time.Since(at))
		a.requireLost(1, "at the end that the first answer made certain", tok, lease.ErrBroken)
	}},
	{"H13/a-break-counts-from-the-sending", "what is left of a break is counted from before the request that learned of it, and not from its answer", CanUseAuthority | CanBreak | exactTime, func(p *tester) {
		w, a := p.one(leasefault.From(1, lease.ActionRenew, leasefault.DelayAnswer(p.D/12)))
		tok := a.acquire()
		w.revoke(p.D * 3 / 4)
		p.pass(p.D * 3 / 4)
		a.requireLost(1, "at the end of the break", tok, lease.ErrBroken)
	}},
	{"H13/a-signal-is-answered-within-a-tenth-of-an-interval", "a holder that watches its lease asks within a tenth of an interval after every signal, including a signal that follows another one, and a signal without a change", CanUseAuthority | CanBreak | CanShowRecords | exactTime, func(p *tester) {
		tenth := p.D / 30 // renewals are expected every third of the duration
		for i := range 12 {
			w := p.worldOf(fmt.Sprint(p.name, i))
			watched := &watchLog{Authority: w.direct, spurious: make(chan struct{}, 1)}
			w.direct = wrap.Authority(watched, w.direct)
			a := w.join(Holder{Name: w.name, Owner: "a", TakeOver: p.can(CanTakeOver)}) // with TakeOver, the holder has a reason to watch its lease
			a.acquire()
			p.pass(p.D + time.Duration(p.rand.Int64N(int64(p.D))))
			if watched.calls.Load() == 0 {
				p.Skipf("the holder does not watch its lease")
			}
			var warned func() []time.Time
			if p.can(hasOnBreaking) {
				warned = a.recordBreaks()
			}
			lost := watched.lost.Load()
			if i >= 6 {
				watched.spurious <- struct{}{}
				p.pass(1 + time.Duration(p.rand.Int64N(int64(tenth))))
			}
			if i%3 > 0 {
				w.revoke(p.D * 3 / 4)
				p.pass([]time.Duration{0, tenth, time.Duration(p.rand.Int64N(int64(tenth)))}[i%3])
				a.requireAlive("while its break has just begun")
				if i%3 == 1 && warned != nil && !lost && len(warned()) == 0 {
					p.Errorf("a tenth of an interval after the signal of a break no handler was called")
				}
			}
			lost = lost || watched.lost.Load()
			w.revoke(0)
			p.pass(tenth)
			if lost {
				continue // the signal may have come while there was no watch
			}
			a.requireNotAlive("a tenth of an interval after the signal of a break")
			a.awaitLosses(1)
		}
	}},
	{"H13/asks-once-an-interval-though-answers-are-slow", "a holder asks at least once an interval, counted from the sending of a request and not from its answer", CanUseAuthority | exactTime, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Always(lease.ActionRenew, leasefault.DelayAnswer(p.D/15)))
		a.acquire()
		p.pass(4 * p.D)
		a.requireAlive("while each renewal was answered")
		renewals := a.requests.sentOf(lease.ActionRenew)
		for i := 1; i < len(renewals); i++ {
			if gap := renewals[i].at.Sub(renewals[i-1].at); gap > p.D*37/100 { // renewals are expected about every third of the duration
				p.Errorf("renewal %d was sent %v after the one before, and the duration is %v", i+1, gap, p.D)
			}
		}
	}},
	{"H13/a-signal-of-a-later-watch-is-answered", "a holder whose watch was lost begins another within two intervals, and asks within a tenth of an interval after its signals", CanUseAuthority | CanBreak | CanShowRecords | exactTime | noLimits, func(p *tester) {
		const duration = 10 // the duration of the lease, in suite durations
		tenth := p.D * duration / 30
		w := p.world()
		var watches atomic.Int32
		watched := &watchLog{Authority: leasefault.Lossy(w.direct, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			if watches.Add(1) == 1 {
				return leasefault.CloseWatch(p.D/2)(ctx, watch)
			}
			return watch(ctx)
		})}
		w.direct = wrap.Authority(watched, w.direct)
		a := w.join(Holder{Owner: "a", Duration: duration * p.D, TakeOver: p.can(CanTakeOver)}) // with TakeOver, the holder has a reason to watch its lease
		a.acquire()
		p.pass(p.D / 2)
		if watches.Load() == 0 {
			p.Skipf("the holder does not watch its lease")
		}
		p.pass(20 * tenth)
		if watches.Load() == 1 {
			p.Fatalf("the watch was lost two intervals ago, and no other has begun")
		}
		watched.lost.Store(false)
		for n := len(a.requests.sentOf(lease.ActionRenew)); len(a.requests.sentOf(lease.ActionRenew)) == n && a.stillAlive(); {
			p.pass(p.D / 50)
		}
		p.pass(tenth)
		if watched.lost.Load() {
			p.Skipf("the watch is lost again and again")
		}
		w.revoke(0)
		p.pass(tenth)
		a.requireNotAlive("a tenth of an interval after a signal of the second watch")
	}},
	{"H13/handlers-are-called-at-a-break", "handlers of OnBreaking are called with the end of the lease, and again if that moves earlier, in every term", canRevoke | CanBreak | CanShowRecords | hasOnBreaking, func(p *tester) {
		w, a := p.one()
		warned := a.recordBreaks()
		for n := range 2 {
			before := len(warned())
			a.acquireWithin(3, "before a break")
			began := time.Now()
			w.revoke(p.D * 9 / 10)
			p.pass(p.D*5/12 + p.Slack/4)
			first := warned()[before:]
			if len(first) != 1 {
				p.Fatalf("the handler was called %d times for one break: %v", len(first), first)
			}
			if end := first[0].Sub(began); end > p.D*9/10+p.Slack || end < p.D*8/10-p.Slack {
				p.Errorf("the handler was called with an end in %v, and the break ends in %v", end, p.D*9/10)
			}
			a.requireAlive("after the warning")
			a.requireLosses(n)
			w.revoke(p.D*17/20 - time.Since(began))
			p.pass(p.D*4/5 - time.Since(began)) // this pause is longer than a renewal interval
			// The second break has moved the end of the lease to an earlier time. A holder with a coarse
			// clock may be unable to notice this difference.
			again, isCertain := warned()[before:], 2*p.Slack < p.D/20
			wasCalledAgain := len(again) == 2 && again[1].Before(first[0])
			movedLater := slices.ContainsFunc(again, first[0].Before)
			if isCertain && !wasCalledAgain || len(again) > 2 || movedLater {
				p.Errorf("the break was shortened, and the handler was called with %v", again)
			}
			p.pass(p.D*17/20 + p.Slack - time.Since(began))
			a.requireNotAlive("when the break is over")
			a.awaitLosses(n + 1)
		}
	}},
	{"H13/a-handler-that-is-unregistered-is-not-called-at-a-break", "a handler of OnBreaking that was unregistered is not called", canRevoke | CanBreak | CanShowRecords | hasOnBreaking, func(p *tester) {
		w, a := p.one()
		stop := a.Lease.(breakNotifier).OnBreaking(func(time.Time) { p.Errorf("a handler that was unregistered was called") })
		if !stop() || stop() {
			p.Errorf("stop must be true once")
		}
		a.acquire()
		w.revoke(p.D / 2)
		p.pass(p.D)
	}},
	{"H14/hand-over", "a hand-over gives the lease to the receiver, no other holder gets it in between, and the giver's term and its contexts end without OnLost", hasHandOver | CanChange, func(p *tester) {
		w := p.world()
		a, b, c := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"}), w.join(Holder{Owner: "c"})
		old := a.acquire()
		held, giveBack := lease.WhileHeld(p.ctx, a.Lease)
		defer giveBack()
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		a.requireNotAlive("after it handed over")
		if p.can(hasWhileHeld) && lease.CodeOf(context.Cause(held)) != lease.ErrReleased {
			p.Errorf("the lease was handed over, and the cause of its context is %v", context.Cause(held))
		}
		c.requireDenied("that was handed to another")
		if tok := b.acquire(); p.can(hasToken) && tok.Compare(old) <= 0 {
			p.Errorf("the receiver's token is %q, and the giver's was %q", tok, old)
		}
		b.requireAliveFor(2*p.D, "after it was given the lease")
		a.requireNotAlive("after it handed over")
		a.requireLosses(0)
	}},
	{"H14/a-done-context-hands-nothing-over", "a hand-over under a context that is done makes no request and returns the context's error: the giver goes on holding, or has released", hasHandOver | CanChange, func(p *tester) {
		_, a, b := p.two()
		a.acquire()
		ctx := p.doneContext()
		if err := a.giver().HandOver(ctx, b.giver().ID()); !errors.Is(err, context.Canceled) {
			p.Errorf("the error is %v", err)
		}
		p.pass(p.D / 100)
		if n := len(a.requests.sentOf(lease.ActionChange)); n != 0 {
			p.Errorf("%d changes were sent", n)
		}
		if a.CheckAlive() {
			b.requireDenied("that was not handed over")
			a.requireAliveFor(2*p.D, "after a hand-over under a done context that did not end it")
		} else {
			p.pass(p.D / 20)
			b.acquire()
		}
		a.requireLosses(0)
	}},
	{"H14/a-hand-over-ends-with-its-context", "a hand-over whose context ends returns its error at once, though nothing answers", hasHandOver | CanChange | CanUseAuthority, func(p *tester) {
		_, a, b := p.two(leasefault.Nth(1, lease.ActionChange, p.loseRequest))
		a.acquire()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/20)
		defer cancel()
		began := time.Now()
		err := a.giver().HandOver(ctx, b.giver().ID())
		p.history.printf("a: HandOver: %v", err)
		if took := time.Since(began); took > p.D/20+p.Slack || !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the context ended after %v, and the hand-over returned %v after %v", p.D/20, err, took)
		}
		a.requireNotAlive("after a hand-over whose context ended")
		a.requireLosses(0)
	}},
	{"H14/the-belief-ends-with-the-hand-over", "CheckAlive is false from the call of a hand-over on, before the authority is asked, even if its answer is lost", hasHandOver | CanChange | CanUseAuthority, func(p *tester) {
		for i, fault := range []leasefault.Fault{leasefault.FailAnswer, leasefault.FailRequest} {
			w := p.worldOf(fmt.Sprint(p.name, i))
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
			a.requireNotAliveFor(p.D, "after a hand-over without an answer")
			a.requireLosses(0)
		}
	}},
	{"H14/a-repeated-hand-over-settles-it", "a hand-over whose outcome is unknown can be repeated with the same receiver, and returns nil when the receiver has the lease", hasHandOver | CanChange | CanUseAuthority | exactTime, func(p *tester) {
		for i, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer} {
			w, a, b := p.handOverInVain(i, fault)
			err := a.giver().HandOver(p.ctx, b.giver().ID())
			p.need(err, "a hand-over that was repeated")
			a.requireNotAlive("after it handed over")
			w.join(Holder{Name: w.name, Owner: "c"}).requireDenied("that was handed to another")
			b.acquire()
			b.requireAliveFor(2*p.D, "after it was given the lease")
			a.requireLosses(0)
		}
	}},
	{"H14/what-is-never-taken-ends-with-its-receiver", "a lease that was handed over and never acquired ends with the release or the close of the receiver", hasHandOver | CanChange, func(p *tester) {
		for i := range 2 {
			w := p.worldOf(fmt.Sprint(p.name, i))
			a, b, c := w.join(Holder{Name: w.name, Owner: "a"}), w.join(Holder{Name: w.name, Owner: "b"}), w.join(Holder{Name: w.name, Owner: "c"})
			a.acquire()
			p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
			end := b.Release
			if closes, ok := b.Lease.(closer); ok && i == 1 {
				end = closes.Close
			}
			p.need(end(p.ctx), "the release or close of a receiver that has not acquired")
			c.acquire()
		}
	}},
	{"H14/what-is-given-to-an-earlier-ID-ends-with-the-next-acquire", "a lease that was handed over to an ID that the receiver had given up ends with the next acquire of the receiver, which does not return that another holder has it", hasHandOver | CanChange | CanUseAuthority | CanShowRecords, func(p *tester) {
		w, a, b := p.two()
		to := b.giver().ID()
		b.acquire()
		p.need(b.release(), "release")
		a.acquire()
		p.need(a.giver().HandOver(p.ctx, to), "hand-over to an earlier ID")
		switch _, ok, err := b.tryAcquire(p.ctx); {
		case ok:
			p.need(b.release(), "release")
		case err == nil:
			p.Errorf("Acquire returned false, nil, but no other holder has the lease")
		}
		p.pass(p.D / 20)
		w.requireFree("after the next acquire of the receiver")
	}},
	{"H14/a-stuck-acquire-locks-nothing-after-a-hand-over", "an earlier infinite acquire of the giver, which is carried out only after a hand-over, leaves nothing locked after the giver's next release", hasHandOver | CanChange | CanUseAuthority | CanBeInfinite, func(p *tester) {
		w := p.world()
		var early *leasefault.Call
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite}, leasefault.Nth(1, lease.ActionAcquire, func(_ context.Context, c *leasefault.Call) error {
			early = c
			return leasefault.ErrInjected
		}))
		b := w.join(Holder{Owner: "b"})
		a.requireError(p.ctx, "that has not arrived yet")
		a.acquire()
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		b.acquire()
		p.need(b.release(), "release by the receiver")
		p.history.printf("== the first acquire of a arrives: %v", early.Send(context.WithoutCancel(p.ctx)))
		p.need(a.release(), "release by the giver")
		w.requireFree("after the giver's release")
	}},
	{"H14/a-stuck-acquire-that-overtakes-a-hand-over-locks-nothing", "an earlier acquire of the giver, which is carried out between a hand-over and its answer, leaves nothing locked after the giver's next release", hasHandOver | CanChange | CanUseAuthority | CanBreak, func(p *tester) {
		w := p.world()
		gate := p.gate()
		a := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, ignoreContext(gate)),
			leasefault.Nth(1, lease.ActionChange, func(ctx context.Context, c *leasefault.Call) error {
				err := c.Send(ctx)
				w.revoke(0) // the receiver has lost the lease, so its acquire is granted
				gate.Open()
				p.Sleep(p.D / 50) // the acquire returns before the hand-over is answered
				return err
			}))
		b := w.join(Holder{Owner: "b"})
		a.requireError(p.ctx, "that has not arrived yet")
		a.acquire()
		if all := a.requests.sentOf(lease.ActionAcquire); all[0].Proposed != all[1].Proposed {
			p.Skipf("the holder proposes another ID after an error")
		}
		p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
		p.need(a.release(), "release by the giver")
		w.requireFree("after the giver's release")
	}},
	{"H14/a-hand-over-that-is-refused-releases", "if the authority refuses a hand-over, the call returns that refusal, and the ID has been released by then", hasHandOver | CanChange | CanUseAuthority, func(p *tester) {
		w := p.world()
		refuse := func(context.Context, *leasefault.Call) error {
			return &lease.OpError{Op: "change", Name: w.name, Err: lease.ErrForeign}
		}
		a, b, c := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionChange, refuse)), w.join(Holder{Owner: "b"}), w.join(Holder{Owner: "c"})
		a.acquire()
		if err := a.giver().HandOver(p.ctx, b.giver().ID()); !errors.Is(err, lease.ErrForeign) {
			p.Errorf("a hand-over that was refused with %v returned %v", lease.ErrForeign, err)
		}
		a.requireNotAlive("after a hand-over that was refused")
		c.acquire()
		a.requireLosses(0)
	}},
	{"H14/what-is-not-held-is-not-handed-over", "a hand-over of a lease that is not held is an error and changes nothing", hasHandOver | CanChange, func(p *tester) {
		_, a, b := p.two()
		b.acquire()
		if err := a.giver().HandOver(p.ctx, p.id()); err == nil {
			p.Errorf("a hand-over of what another holds returned nil")
		}
		b.requireAliveFor(p.D, "after another handed over what it did not hold")
	}},
	{"H14/a-hand-over-needs-another-ID", "a hand-over to no ID, or to the ID under which the lease is held, is an error and changes nothing", hasHandOver | CanChange, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/4)
		defer cancel()
		for _, to := range []lease.ID{{}, a.giver().ID()} {
			if err := a.giver().HandOver(ctx, to); err == nil || ctx.Err() != nil {
				p.Errorf("a hand-over to the ID %v returned %v", to, err)
			}
		}
		a.requireAliveFor(2*p.D, "after hand-overs that named no other holder")
		a.requireLosses(0)
	}},
}

// A watchLog is an authority that counts its watches, and records whether any of them was lost.
type watchLog struct {
	lease.Authority
	calls    atomic.Int32
	lost     atomic.Bool
	spurious chan struct{} // for each value received, the watch signals although nothing has changed; may be nil
}

func (l *watchLog) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	l.calls.Add(1)
	signals, err := l.Authority.(lease.Watcher).Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for more := true; more; {
			select {
			case _, more = <-signals:
			case <-l.spurious:
			}
			if more {
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
		if ctx.Err() == nil {
			l.lost.Store(true)
		}
	}()
	return out, nil
}

// recordBreaks registers a handler of OnBreaking. The result lists the arguments of its calls.
func (p *contender) recordBreaks() (ends func() []time.Time) {
	p.w.Helper()
	var mu sync.Mutex
	var all []time.Time
	p.Lease.(breakNotifier).OnBreaking(func(until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, until)
	})
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), all...)
	}
}

// handOverInVain acquires a lease, injects the fault into its hand-over, and requires that the hand-over
// fails.
func (p *tester) handOverInVain(i int, fault leasefault.Fault) (w *world, giver, receiver *contender) {
	p.Helper()
	w = p.world()
	w.name = fmt.Sprint(p.name, i)
	a, b := w.join(Holder{Name: w.name, Owner: "a"}, leasefault.Nth(1, lease.ActionChange, fault)), w.join(Holder{Name: w.name, Owner: "b"})
	a.acquire()
	if err := a.giver().HandOver(p.ctx, b.giver().ID()); err == nil {
		p.Errorf("a hand-over without an answer returned nil")
	}
	return w, a, b
}

func (p *contender) giver() handOverer { return p.Lease.(handOverer) }
