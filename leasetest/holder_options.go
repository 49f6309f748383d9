package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// requireShortRequests requires that the contender has sent a request with the given action. None of these
// requests may take longer than d and Options.Slack together, unless its context is done.
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
	{"H11/every-renewal-has-a-bound", "the context of a renewal ends, at the latest with what is certain, though nothing answers", CanUseAuthority, func(p *tester) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.From(1, lease.ActionRenew, p.loseRequest))
		a.acquire()
		p.pass(p.D * 7 / 8)
		a.requireShortRequests(lease.ActionRenew, p.D/2)
		p.pass(p.D)
		a.requireShortRequests(lease.ActionRenew, p.D)
	}},
	{"H11/two-renewals-that-hang-stop-all-others", "while two renewals of an infinite lease have been given up and have not returned, no third is sent, even if Acquire is called", CanUseAuthority | CanBeInfinite | exactTime, func(p *tester) {
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
	{"H17/a-release-ends-with-its-context", "a release whose context ends returns its error at once, though nothing answers", CanUseAuthority, func(p *tester) {
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
	{"H17/every-release-has-a-bound", "the context of every release that is sent ends, though the context of the call does not, and nothing answers", CanUseAuthority, func(p *tester) {
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
	{"H8/the-owner-is-sent", "a holder sends its owner with every acquire, and other owners never", CanUseAuthority, func(p *tester) {
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
	{"H17/a-release-ends-a-break", "a release while the lease is breaking gives it up at once, and is no loss", canRevoke | CanBreak | CanShowRecords, func(p *tester) {
		w, a, b := p.two()
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
}

// waitRules check Wait and the errors for invalid options.
var waitRules = []rule{
	{"H21/wait", "wait returns at once if the lease is free, with the context's error if that ends first, and in time when the holder releases", hasWait, func(p *tester) {
		_, a, b := p.two()
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
	{"H21/an-error-of-the-authority-ends-no-wait", "a wait whose requests fail returns no error but that of its context", CanUseAuthority | hasWait, func(p *tester) {
		w, a := p.one()
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
	{"H21/wait-returns-though-a-read-hangs", "a wait whose requests hang and ignore their contexts returns when it may be worth asking again", CanUseAuthority | hasWait, func(p *tester) {
		b := p.world().join(Holder{Owner: "b"}, leasefault.Always(leasefault.Any, ignoreContext(p.gate())))
		ctx, cancel := context.WithTimeout(p.ctx, 10*p.D)
		defer cancel()
		p.need(b.waiter().Wait(ctx), "waiting while requests hang")
	}},
	{"H21/wait-ends-with-a-release-and-a-close", "every wait ends when its own holder is released or closed, though another holds and though requests hang", CanUseAuthority | hasWait | exactTime, func(p *tester) {
		for i := range 8 {
			var hang atomic.Bool
			gate := p.gate()
			w := p.worldOf(fmt.Sprint(p.name, i))
			a, b := w.join(Holder{Name: w.name, Owner: "a"}), w.join(Holder{Name: w.name, Owner: "b"}, leasefault.Always(leasefault.Any, leasefault.If(hang.Load, ignoreContext(gate))))
			a.acquire()
			hang.Store(i%4 >= 2)
			const waits = 3
			waited := make(chan error, waits)
			for range waits {
				go p.guarded(func() { waited <- b.waiter().Wait(p.ctx) })()
			}
			if p.pass(p.D / 100); i < 4 { // in the later cases, the first read of each wait is in flight
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
			if what == "close" {
				began := time.Now()
				if err := b.waiter().Wait(p.ctx); time.Since(began) > 0 {
					p.Errorf("a wait after close returned %v, after %v", err, time.Since(began))
				}
			}
		}
	}},
	{"H21/wait-ends-without-a-watch", "a wait for a lease without an end returns after its release, even if the watch is lost, cannot begin, begins just after the release, or there is none", CanUseAuthority | hasWait | CanBeInfinite | exactTime, func(p *tester) {
		direct := p.world().direct
		var a *contender
		for i, over := range []func(lease.Authority) lease.Authority{
			func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.CloseWatch(p.D/20)) },
			func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.FailWatch) },
			func(a lease.Authority) lease.Authority { return struct{ lease.Authority }{a} },
			func(over lease.Authority) lease.Authority { // the release comes between the first read of Wait and its watch
				return leasefault.Lossy(over, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
					_ = a.release()
					return watch(ctx)
				})
			},
		} {
			w := &world{p, direct}
			name := fmt.Sprint(p.name, i)
			a = w.join(Holder{Name: name, Owner: "a", Duration: lease.Infinite})
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
	{"H22/bad-holders-are-refused", "what is out of range, or leaves no time to renew, is refused when the lease is made: the constructor fails its test, and the message contains the value", 0, func(p *tester) {
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
