package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// requireShortRequests tests the requests with the given action. requireShortRequests requires that
// the contender has sent at least one request with the action, and that no request with the action
// has been in flight for longer than d plus Options.Slack. A request is in flight until it has an
// answer or its context is done.
func (p *contender) requireShortRequests(a lease.Action, d time.Duration) {
	p.w.Helper()
	all := p.requests.sentOf(a)
	if len(all) == 0 {
		p.w.Fatalf("%s: no request to %v was sent", p.who, a)
	}
	for i, s := range all {
		if age := time.Since(s.at); age > d+p.w.Slack && s.ctx.Err() == nil && p.requests.isInFlight(s.ctx) {
			p.w.Errorf("%s: request %d to %v is under way for %v, and its context has not ended", p.who, i+1, a, age)
		}
	}
}

// abandonOrFail calls Acquire with a timeout of d, and requires that Acquire returns an error. The
// error may have a cause other than the timeout.
func (p *contender) abandonOrFail(d time.Duration) {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, d)
	defer cancel()
	_ = p.requireError(ctx, "while requests hang")
}

// isInFlight reports whether a request with the given context has no answer yet.
func (w *requestLog) isInFlight(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.flying {
		if c == ctx {
			return true
		}
	}
	return false
}

// boundRules check the contexts and the fields of requests.
var boundRules = []rule{
	{"H11/every-renewal-has-a-bound", "the context of a renewal ends, at the latest with what is certain, though nothing answers", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, p.loseRequest))
		a.acquire()
		p.pass(p.D * 7 / 8)
		a.requireShortRequests(lease.ActionRenew, p.D/2)
		p.pass(p.D)
		a.requireShortRequests(lease.ActionRenew, p.D)
	}},
	{"H11/every-renewal-of-an-infinite-lease-has-a-bound", "a renewal of an infinite lease that nothing answers is given up, and the lease is renewed again", CanUseAuthority | CanBeInfinite | exactTime, func(p *probe) {
		a := p.world().join(Holder{Owner: "a", Duration: lease.Infinite}, leasefault.Nth(1, lease.ActionRenew, p.loseRequest), leasefault.Nth(3, lease.ActionRenew, p.loseAnswer))
		a.acquire()
		a.requireAliveFor(time.Hour, "after it acquired forever")
		a.requireShortRequests(lease.ActionRenew, 10*time.Minute)
		if n := len(a.requests.sentOf(lease.ActionRenew)); n < 10 {
			p.Errorf("%d renewals in an hour, two of which were not answered", n)
		}
	}},
	{"H11/two-requests-that-hang-stop-all-others", "while two requests have been given up and have not returned, only reads are sent; once one returns, requests are sent again", CanUseAuthority | exactTime, func(p *probe) {
		one, others := p.gate(), p.gate()
		var changes atomic.Int32 // the requests that are not reads
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, leasefault.Any, func(ctx context.Context, c *leasefault.Call) error {
			switch {
			case c.Op == lease.ActionRead.String():
				return c.Send(ctx)
			case changes.Add(1) == 1:
				return ignoreContext(one)(ctx, c)
			}
			return ignoreContext(others)(ctx, c)
		}))
		for range 6 {
			before := changes.Load() // all of them were given up, and none has returned
			a.abandonOrFail(p.D / 4)
			p.pass(4 * p.D)
			if n := changes.Load(); before >= 2 && n > before {
				p.Fatalf("%d requests were given up and have not returned, and %d more were sent", before, n-before)
			}
		}
		before := changes.Load()
		one.Open()
		p.pass(p.D / 10)
		a.abandonOrFail(p.D / 4)
		if changes.Load() == before {
			p.Errorf("a request has returned, and nothing was sent since")
		}
		others.Open()
		p.pass(2 * p.D)
		a.acquireWithin(5, "after all requests have returned")
	}},
	{"H11/two-renewals-that-hang-stop-all-others", "while two renewals of an infinite lease have been given up and have not returned, no third is sent, even if Acquire is called", CanUseAuthority | CanBeInfinite | exactTime, func(p *probe) {
		first, gate := p.gate(), p.gate()
		a := p.world().join(Holder{Owner: "a", Duration: lease.Infinite}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(first)), leasefault.From(2, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		for range 40 {
			p.pass(p.D / 2)
			_, _, _ = a.tryAcquire(p.ctx)
			if n := len(a.requests.sentOf(lease.ActionRenew)); n > 2 {
				p.Fatalf("%d renewals were sent, and none has returned", n)
			}
		}
		first.Open()
		p.pass(20 * p.D)
		if n := len(a.requests.sentOf(lease.ActionRenew)); n > 3 {
			p.Errorf("%d renewals were sent, and only the first has returned", n)
		}
		before := len(a.requests.sentOf(lease.ActionRenew))
		gate.Open()
		p.pass(2 * p.D)
		if n := len(a.requests.sentOf(lease.ActionRenew)); n == before {
			p.Errorf("the renewals have returned, and none was sent since")
		}
	}},
	{"H11/an-answer-in-between-frees-no-renewal-that-hangs", "two renewals that were given up and have not returned stop all others, even if a renewal between the two was answered", CanUseAuthority | CanBeInfinite | exactTime, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a", Duration: lease.Infinite}, leasefault.Nth(1, lease.ActionRenew, ignoreContext(gate)), leasefault.From(3, lease.ActionRenew, ignoreContext(gate)))
		a.acquire()
		p.pass(20 * p.D)
		if n := len(a.requests.sentOf(lease.ActionRenew)); n > 3 {
			p.Errorf("%d renewals were sent, and two of the first three have been given up and have not returned", n)
		}
		gate.Open()
		p.pass(2 * p.D)
		a.requireAlive("after all renewals have returned")
	}},
	{"H11/renewals-that-return-late-stop-nothing", "renewals that hung and were given up, and return only in the next incarnation, do not stop later requests", CanUseAuthority | exactTime, func(p *probe) {
		const rounds = 3
		var lines []leasefault.Line[lease.Action]
		var round, hung atomic.Int32
		var gates []*leasefault.Gate
		for i := range int32(rounds) {
			gates = append(gates, p.gate())
			first := func() bool { return round.Load() == i && hung.CompareAndSwap(i, i+1) }
			lines = append(lines, leasefault.Always(lease.ActionRenew, leasefault.If(first, ignoreContext(gates[i]))))
		}
		a := p.world().join(Holder{Owner: "a"}, lines...)
		for i := range int32(rounds) {
			round.Store(i)
			a.acquire()
			p.pass(2 * p.D)
			if i > 0 {
				a.requireAlive("after a renewal hung and was given up, as one did before")
			} else if !a.CheckAlive() {
				p.Skipf("the holder sends no other renewal while one ignores its context")
			}
			p.need(a.release(), "release")
			round.Store(rounds)
			a.acquire()
			gates[i].Open()
			p.pass(p.D / 2)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.requireAliveFor(2*p.D, "after all requests have returned")
	}},
	{"H3/every-undoing-has-a-bound", "the context of the release that undoes an acquire ends, though nothing answers, and the release is sent again", CanUseAuthority, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10)), leasefault.First(2, lease.ActionRelease, p.loseRequest))
		a.abandon(p.D / 20)
		p.pass(2 * p.D)
		a.requireShortRequests(lease.ActionRelease, p.D)
		a.acquireWithin(5, "after an undoing that was not answered")
	}},
	{"H17/a-release-ends-with-its-context", "a release whose context ends returns its error at once, though nothing answers", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionRelease, p.loseRequest))
		a.acquire()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/20)
		defer cancel()
		began := time.Now()
		err := a.Release(ctx)
		p.history.printf("a: Release: %v", err)
		if took := time.Since(began); took > p.D/20+p.Slack || ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the context ended after %v, and the release returned %v after %v", p.D/20, err, took)
		}
		a.requireNotAlive("after a release whose context ended")
	}},
	{"H17/every-release-has-a-bound", "the context of every release that is sent ends, though the context of the call does not, and nothing answers", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.First(3, lease.ActionRelease, p.loseRequest))
		a.acquire()
		released := make(chan error, 1)
		go p.guarded(func() { released <- a.Release(context.WithoutCancel(p.ctx)) })()
		p.pass(2 * p.D)
		a.requireShortRequests(lease.ActionRelease, p.D)
		select {
		case <-released:
		case <-time.After(10 * p.D):
			p.Errorf("the release does not return")
		}
	}},
	{"H2/no-request-under-a-done-context", "no request is sent under a context that is done", CanUseAuthority, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"}, leasefault.Nth(2, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10)), leasefault.Nth(4, lease.ActionAcquire, p.loseAnswer))
		done, cancel := context.WithCancel(p.ctx)
		cancel()
		_, _, _ = a.tryAcquire(done)
		a.acquire()
		_, _, _ = a.tryAcquire(done) // while the lease is held
		_ = a.Release(done)
		p.pass(p.D / 2)
		a.abandon(p.D / 20)
		p.pass(p.D / 2)
		a.acquireWithin(5, "after one that was abandoned")
		_ = a.Release(done)
		p.pass(p.D / 2)
		a.abandon(p.D / 20)
		_ = a.Release(done)
		p.pass(p.D / 2)
		earlier := len(a.requests.sentOf(lease.ActionRead))
		if l, ok := a.Lease.(lease.Waiter); ok {
			_ = l.Wait(done)
		}
		reads := a.requests.sentOf(lease.ActionRead)[earlier:]
		if l, ok := a.Lease.(closer); ok {
			a.acquireWithin(5, "before a close")
			_ = l.Close(done)
		}
		p.pass(2 * p.D)
		// A holder that watches its record can cancel the context of a read request as soon as it
		// has sent the request. The rule therefore counts only the read requests of Wait.
		commands := slices.DeleteFunc(a.requests.sentOf(leasefault.Any), func(s sent) bool { return s.Action == lease.ActionRead })
		for _, s := range slices.Concat(commands, reads) {
			if s.done {
				p.Errorf("%s was sent under a context that was done", requestText(s.Request))
			}
		}
	}},
	{"H8/the-owner-is-sent", "a holder sends its owner with every acquire, and other owners never", CanUseAuthority, func(p *probe) {
		w := p.world()
		for _, owner := range []string{"worker-1", "worker-2"} {
			a := w.join(Holder{Owner: owner})
			for range 2 {
				a.acquire()
				if r := w.now(); r.Owner != owner {
					p.Errorf("%s acquired, and the record has the owner %q", owner, r.Owner)
				}
				p.pass(p.D / 2)
				p.need(a.release(), "release")
			}
			if p.can(hasHandOver | CanChange) {
				b := w.join(Holder{Owner: owner})
				a.acquire()
				p.need(a.giver().HandOver(p.ctx, b.giver().ID()), "hand-over")
				b.acquire()
				p.need(b.release(), "release")
			}
			if p.can(CanTakeOver | CanChange) {
				c := w.join(Holder{Owner: owner, TakeOver: true})
				a.acquire()
				c.acquire()
				if r := w.now(); r.Owner != owner {
					p.Errorf("%s has taken over, and the record has the owner %q", owner, r.Owner)
				}
				p.need(c.release(), "release")
				_ = a.release()
			}
			for _, s := range a.requests.sentOf(leasefault.Any) {
				if s.Owner != owner && (s.Action == lease.ActionAcquire || s.Owner != "") {
					p.Errorf("%s sent %s", owner, requestText(s.Request))
				}
			}
		}
	}},
	{"H1/denied-in-every-state", "an acquire of what another holds is false without an error, and does not wait: of a holder that never held, has released, or has lost", canLose, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		denied := func(when string) {
			p.Helper()
			began := time.Now()
			a.requireDenied("that another holds, " + when)
			if took := time.Since(began); took > p.Slack {
				p.Errorf("%s the acquire took %v", when, took)
			}
		}
		b.acquire()
		denied("before it ever held")
		p.need(b.release(), "release")
		a.acquire()
		p.need(a.release(), "release")
		b.acquire()
		denied("after it has released")
		p.need(b.release(), "release")
		a.acquire()
		a.loseNth(1)
		p.pass(p.D)
		b.acquire()
		a.mend()
		if p.can(CanShowRecords) {
			a.requireDenied("that another holds, at first after a loss") // a may first release the lease that it has lost
		} else if _, ok, _ := a.tryAcquire(p.ctx); ok { // an error is correct after a loss
			p.Errorf("the acquire of a lease that another holds is granted after a loss")
		}
		p.pass(p.Unit)
		denied("after it has lost")
	}},
	{"H1/acquire-does-not-wait-in-any-state", "an acquire of what is free is granted at once: by a holder that never held, has released, or has lost", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		granted := func(when string) {
			p.Helper()
			began := time.Now()
			a.acquire()
			if took := time.Since(began); took > p.Slack {
				p.Errorf("%s the acquire took %v", when, took)
			}
		}
		granted("before it ever held")
		p.need(a.release(), "release")
		granted("after it has released")
		a.loseNth(1)
		p.pass(2 * p.D)
		a.mend()
		began := time.Now()
		_, ok, _ := a.tryAcquire(p.ctx) // a may first release the lease that it has lost
		if took := time.Since(began); took > p.D/2+p.Slack {
			p.Errorf("after it has lost, the acquire took %v", took)
		}
		if ok {
			p.need(a.release(), "release")
		}
		p.pass(p.D)
		if !ok {
			granted("after it has lost")
		}
	}},
	{"H5/acquire-while-breaking-sends-nothing", "an acquire while the lease is breaking returns the token that is held, and keeps nothing beyond the end of the break", canRevoke | CanBreak | CanShowRecords, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		tok := a.acquire()
		began := time.Now()
		w.revoke(p.D * 9 / 10)
		p.pass(p.D/2 + p.Slack/4)
		asked := len(a.requests.sentOf(lease.ActionAcquire))
		if again := a.acquire(); again != tok {
			p.Errorf("the token was %q, and is %q while the lease is breaking", tok, again)
		}
		if n := len(a.requests.sentOf(lease.ActionAcquire)); n != asked {
			p.Errorf("%d acquires were sent while the lease was breaking", n-asked)
		}
		p.pass(p.D*9/10 - time.Since(began) + p.Slack)
		a.requireNotAlive("when the break is over")
		a.awaitLosses(1)
	}},
	{"H17/a-release-ends-a-break", "a release while the lease is breaking gives it up at once, and is no loss", canRevoke | CanBreak | CanShowRecords, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		for _, known := range []bool{true, false} {
			a.acquire()
			w.revoke(p.D * 9 / 10)
			if known {
				p.pass(p.D/2 + p.Slack/4)
			}
			p.need(a.release(), "release of a breaking lease")
			b.acquire()
			p.need(b.release(), "release")
		}
		p.pass(2 * p.D)
		a.requireLosses(0)
	}},
	{"H13/a-break-ends-though-the-holder-is-cut-off", "a holder that has learned of a break and is cut off then loses the lease as broken, at the end of the break at the latest", canRevoke | canCut | CanBreak | CanShowRecords, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		tok := a.acquire()
		began := time.Now()
		w.revoke(p.D * 3 / 4)
		p.pass(p.D/2 + p.Slack/4)
		a.cut()
		p.pass(p.D*3/4 - time.Since(began) + p.Slack)
		a.requireNotAlive("when the break is over")
		b.acquire()
		a.requireLostError(a.awaitLosses(1), tok, lease.ErrBroken)
		a.mend()
		a.requireNotAliveFor(p.D/2, "after the break")
	}},
	{"H11/a-lease-that-is-gone-is-lost", "a renewal that finds no lease at all, or another ID, is a loss at once, and the record that the holder saw before counts no more", CanUseAuthority, func(p *probe) {
		for _, code := range []lease.Code{lease.ErrIDMismatch, lease.ErrOver, lease.ErrNotPresent, lease.ErrBroken} {
			w := p.world()
			w.name += "/" + code.String()
			w.answer(func(req lease.Request, res *lease.Result, err *error) {
				if req.Action == lease.ActionRenew {
					*res, *err = lease.Result{Now: res.Now, Record: lease.Record{Epoch: res.Record.Epoch}}, &lease.OpError{Op: "renew", Name: w.name, Err: code}
				}
			})
			a := w.join(Holder{Name: w.name, Owner: "a"})
			a.acquire()
			p.pass(p.D/2 + p.Slack)
			a.requireNotAlive("after its renewal was refused as " + code.String())
			a.awaitLosses(1)
		}
	}},
	{"H21/wait-ends-with-its-context", "a wait whose context is done, or ends, returns its error at once while another holds", hasWait, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		for _, after := range []time.Duration{0, p.D / 3} {
			ctx, cancel := context.WithTimeout(p.ctx, after)
			began := time.Now()
			err := b.waiter().Wait(ctx)
			cancel()
			if took := time.Since(began); took > after+p.Slack || !errors.Is(err, context.DeadlineExceeded) {
				p.Errorf("the context ended after %v, and wait returned %v after %v", after, err, took)
			}
		}
		ctx, cancel := context.WithCancelCause(p.ctx)
		defer cancel(nil)
		time.AfterFunc(p.D/3, func() { cancel(errors.New("a cause of the test")) })
		if err := b.waiter().Wait(ctx); !errors.Is(err, context.Canceled) {
			p.Errorf("the context ended with a cause of the caller, and wait returned %v", err)
		}
		a.requireAlive("after another waited")
	}},
	{"H18/what-is-closed-stays-closed", "after close CheckAlive is false, release has nothing to give up, contexts of the incarnation end, and other holders can acquire the lease", hasClose, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		held, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		p.need(a.Lease.(closer).Close(p.ctx), "close")
		if p.can(hasWhileHeld) && held.Err() == nil {
			p.Errorf("the lease is closed, and the context of the holding has not ended")
		}
		b.acquire()
		p.need(a.release(), "release of what was closed")
		again, stop := lease.WhileHeld(p.ctx, a.Lease)
		defer stop()
		if again.Err() == nil {
			p.Errorf("a context that is bound to what was closed does not end")
		}
		b.requireAliveFor(2*p.D, "after another was closed")
		a.requireNotAlive("after close")
		a.requireLosses(0)
	}},
}

// waitRules check Wait and invalid options.
var waitRules = []rule{
	{"H21/wait", "wait returns at once if the lease is free, with the context's error if that ends first, and in time when the holder releases", hasWait, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		waiter := b.waiter()
		p.need(waiter.Wait(p.ctx), "waiting for what is free")
		a.acquire()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/2)
		defer cancel()
		if err := waiter.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the context ended, and the error is %v", err)
		}
		waited := make(chan error, 1)
		go p.guarded(func() { waited <- waiter.Wait(p.ctx) })()
		p.pass(p.D / 10)
		p.need(a.release(), "release")
		select {
		case err := <-waited:
			p.need(err, "waiting for what was released")
		case <-time.After(p.D + p.eventTimeout()):
			p.Fatalf("the holder released, and wait does not return")
		}
		b.acquire()
	}},
	{"H21/an-error-of-the-authority-ends-no-wait", "a wait whose requests fail returns no error but that of its context", CanUseAuthority | hasWait, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a"})
		a.acquire()
		for _, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer} {
			b := w.join(Holder{Owner: "b"}, leasefault.Always(leasefault.Any, fault))
			ctx, cancel := context.WithTimeout(p.ctx, p.D/2)
			err := b.waiter().Wait(ctx)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				p.Errorf("the requests of a wait failed, and it returned %v", err)
			}
		}
	}},
	{"H21/wait-returns-though-a-read-hangs", "a wait whose requests hang and ignore their contexts returns when it may be worth asking again", CanUseAuthority | hasWait, func(p *probe) {
		b := p.world().join(Holder{Owner: "b"}, leasefault.Always(leasefault.Any, ignoreContext(p.gate())))
		ctx, cancel := context.WithTimeout(p.ctx, 10*p.D)
		defer cancel()
		p.need(b.waiter().Wait(ctx), "waiting while requests hang")
	}},
	{"H21/wait-ends-when-the-lease-expires", "a wait ends when the lease expires, because no signal is sent for that", hasWait | canStall, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		a.stall()
		waited := make(chan error, 1)
		go p.guarded(func() { waited <- b.waiter().Wait(p.ctx) })()
		select {
		case err := <-waited:
			p.need(err, "waiting for a lease that is not renewed")
		case <-time.After(2*p.D + p.eventTimeout()):
			p.Fatalf("the lease has expired, and wait does not return")
		}
		p.pass(p.D)
		b.acquire()
	}},
	{"H21/wait-ends-with-a-release-and-a-close", "every wait ends when its own holder is released or closed, though another holds and though requests hang", CanUseAuthority | hasWait | exactTime, func(p *probe) {
		for i := range 8 {
			var hang atomic.Bool
			gate := p.gate()
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			a, b := w.join(Holder{Name: w.name, Owner: "a"}), w.join(Holder{Name: w.name, Owner: "b"}, leasefault.Always(leasefault.Any, leasefault.If(hang.Load, ignoreContext(gate))))
			a.acquire()
			hang.Store(i%4 >= 2)
			const waits = 3
			waited := make(chan error, waits)
			for range waits {
				go p.guarded(func() { waited <- b.waiter().Wait(p.ctx) })()
			}
			if p.pass(p.D / 100); i < 4 { // otherwise the first read of each wait is in flight
				p.pass(p.D / 2)
			}
			ctx, cancel := context.WithTimeout(p.ctx, p.D/100)
			end, what := b.Release, "release"
			if c, ok := b.Lease.(closer); ok && i%2 == 1 {
				end, what = c.Close, "close"
			}
			err := end(ctx)
			cancel()
			p.pass(0)
			if n := len(waited); n != waits {
				p.Fatalf("a %s of the waiting holder returned %v, and %d of its %d waits have ended", what, err, n, waits)
			}
		}
	}},
	{"H21/wait-after-close-returns", "a wait that is called after close returns at once, though another holds", hasWait | hasClose, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		p.need(b.Lease.(closer).Close(p.ctx), "close")
		ctx, cancel := context.WithTimeout(p.ctx, p.D)
		defer cancel()
		began := time.Now()
		err := b.waiter().Wait(ctx)
		if took := time.Since(began); took > p.Slack {
			p.Errorf("a wait after close returned %v, after %v", err, took)
		}
	}},
	{"H21/wait-ends-under-an-ID-whose-release-failed", "if the lease is locked under an ID of the holder whose release failed, a wait returns, because an acquire sends that release again; if this fails too, the acquire is an error", CanUseAuthority | hasWait, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Always(lease.ActionRelease, leasefault.FailRequest))
		a.acquire()
		if err := a.release(); err == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		ctx, cancel := context.WithTimeout(p.ctx, p.D/2+p.Slack)
		defer cancel()
		p.need(a.waiter().Wait(ctx), "waiting for the own release")
		a.requireError(p.ctx, "of what is locked under an own ID")
	}},
	{"H21/wait-ends-without-a-watch", "a wait for a lease without an end returns after its release, even if the watch is lost, cannot begin, or there is none", CanUseAuthority | hasWait | CanBeInfinite | exactTime, func(p *probe) {
		direct := p.world().direct
		for i, over := range []func(lease.Authority) lease.Authority{
			func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.CloseWatch(p.D/20)) },
			func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.FailWatch) },
			func(a lease.Authority) lease.Authority { return struct{ lease.Authority }{a} },
		} {
			w := &world{p, direct}
			name := fmt.Sprint(p.name, i)
			a := w.join(Holder{Name: name, Owner: "a", Duration: lease.Infinite})
			w.direct = over(w.direct)
			b := w.join(Holder{Name: name, Owner: "b"})
			a.acquire()
			waited := make(chan error, 1)
			go p.guarded(func() { waited <- b.waiter().Wait(p.ctx) })()
			p.pass(time.Hour)
			p.need(a.release(), "release")
			select {
			case err := <-waited:
				p.need(err, "waiting")
			case <-time.After(4 * p.D):
				p.Fatalf("the lease was released %v ago, and wait has not returned", 4*p.D)
			}
		}
	}},
	{"H21/wait-misses-no-release-before-its-watch", "a wait for a lease without an end returns, if the lease is released just before the watch of the wait begins", CanUseAuthority | hasWait | CanBeInfinite | exactTime, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		a.acquire()
		var once sync.Once
		w.direct = leasefault.Lossy(w.direct, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			once.Do(func() { p.need(a.release(), "release") })
			return watch(ctx)
		})
		b := w.join(Holder{Owner: "b"})
		waited := make(chan error, 1)
		go p.guarded(func() { waited <- b.waiter().Wait(p.ctx) })()
		select {
		case err := <-waited:
			p.need(err, "waiting")
		case <-time.After(4 * p.D):
			p.Fatalf("the lease was released %v ago, and wait has not returned", 4*p.D)
		}
	}},
	{"H21/wait-ends-though-signals-are-lost", "a holder that waits gets the lease even if the watch signals nothing, is lost, or cannot begin, and it does not send requests without a pause", CanUseAuthority | hasWait, func(p *probe) {
		for i, fault := range []leasefault.WatchFault{leasefault.LoseSignals(p.rand.Uint64(), 1), leasefault.CloseWatch(p.D / 20), leasefault.FailWatch} {
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			a := w.join(Holder{Owner: "a"})
			w.direct = leasefault.Lossy(w.direct, fault)
			b := w.join(Holder{Owner: "b"})
			a.acquire()
			held := make(chan error, 1)
			go p.guarded(func() { held <- b.waitUntilHeld() })()
			p.pass(2 * p.D)
			if n := len(b.requests.sentOf(leasefault.Any)); n > 100 {
				p.Errorf("it asked %d times in two durations", n)
			}
			p.need(a.release(), "release")
			select {
			case err := <-held:
				p.need(err, "waiting")
			case <-time.After(p.D + p.eventTimeout()):
				p.Fatalf("the holder released, and the one that waits has not got it")
			}
			b.requireAlive("after it waited")
			p.need(b.release(), "release")
		}
	}},
	{"H22/bad-holders-are-refused", "what is out of range, or leaves no time to renew, is refused when the lease is made: the constructor fails its test, and the message contains the value", 0, func(p *probe) {
		type bad struct {
			what   string
			holder Holder
			value  string // must be in the message
		}
		all := []bad{
			{"a duration below zero", Holder{Duration: -p.D}, (-p.D).String()},
			{"a duration that leaves no time to renew", Holder{Duration: 1}, "1ns"},
			{"no name", Holder{}, `""`},
		}
		for _, h := range badNames[1:] {
			all = append(all, bad{"a name that is " + h.what, Holder{Name: h.name}, ""}, bad{"an owner that is " + h.what, Holder{Owner: h.name}, ""})
		}
		w := p.world()
		var wrong []string
		for _, b := range all {
			h := b.holder
			if h.Authority = w.direct; h.Duration == 0 {
				h.Duration = p.D
			}
			if h.Name == "" && b.what != "no name" {
				h.Name = p.name
			}
			r := &recorder{TB: p.TB}
			r.run(func() { p.suite.newLease(r, h) })
			if said := strings.Join(r.messages, "\n"); said == "" {
				wrong = append(wrong, "a lease with "+b.what+" was made")
			} else if !strings.Contains(said, b.value) {
				wrong = append(wrong, fmt.Sprintf("a lease with %s was refused without a word of %s: %.200s", b.what, b.value, said))
			}
		}
		if len(wrong) > 0 {
			p.Errorf("%s", strings.Join(wrong, "\n"))
		}
	}},
}

func (p *contender) waiter() lease.Waiter {
	p.w.Helper()
	return p.Lease.(lease.Waiter)
}

// waitUntilHeld calls Wait and Acquire in turn until the lease is held.
func (p *contender) waitUntilHeld() error {
	for {
		if err := p.waiter().Wait(p.w.ctx); err != nil {
			return err
		}
		if _, ok, err := p.tryAcquire(p.w.ctx); ok || p.w.ctx.Err() != nil {
			return err
		}
	}
}
