package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// acquireRules check Acquire.
var acquireRules = []rule{
	{"H1/granted-is-held", "an acquire that returns true holds now", 0, func(p *probe) {
		p.world().join(Holder{Owner: "a"}).acquire()
	}},
	{"H1/held-by-another-is-false", "while another holder has the lease, an acquire returns false without an error and has no effect", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		b.requireDenied("that another holds")
		a.aliveFor(2*p.D, "after another tried")
		b.lostSoFar(0)
	}},
	{"H1/breaking-for-another-is-false", "an acquire of a lease that is breaking under another ID returns false without an error", canRevoke | CanBreak, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		w.revoke(p.D / 2)
		b.requireDenied("that is breaking")
	}},
	{"H1/unknown-is-an-error", "an acquire with an unknown outcome returns an error, and CheckAlive stays false", canCut, func(p *probe) {
		w := p.world()
		for i, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer, p.loseRequest, p.loseAnswer} {
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, fault))
			a.orCut()
			a.requireError(p.ctx, "whose outcome is unknown")
			a.deadFor(p.D, "after an acquire of unknown outcome")
			a.lostSoFar(0)
		}
	}},
	{"H1/other-refusals-are-errors", "a refusal that does not say that another has the lease is an error", CanUseAuthority, func(p *probe) {
		w := p.world()
		for i, code := range []lease.Code{lease.ErrEpochLimit, lease.ErrDuration, lease.ErrConflict, lease.ErrCorrupt} {
			direct := w.direct
			w.answer(func(req lease.Request, res *lease.Result, err *error) {
				if req.Action == lease.ActionAcquire {
					// Release the lease, because the holder was told that its acquire was refused.
					_, _ = direct.Do(p.ctx, fmt.Sprint(p.name, i), release(req.Proposed))
					*res, *err = lease.Result{}, &lease.OpError{Op: "acquire", Name: p.name, Err: code}
				}
			})
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"})
			if err := a.requireError(p.ctx, "that is refused as "+code.String()); lease.CodeOf(err) != code {
				p.Errorf("the error is %v", err)
			}
			a.deadFor(p.D/2, "after a refusal")
			w.direct = direct
		}
	}},
	{"H1/the-record's-duration-counts", "a lease stays locked for the duration that its holder was granted, whatever the duration of the next holder", canStall, func(p *probe) {
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
	{"H1/acquire-does-not-wait", "an acquire returns at once while another holder has the lease", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		began := time.Now()
		b.requireDenied("that another holds")
		if took := time.Since(began); took > p.Slack {
			p.Errorf("it took %v", took)
		}
	}},
	{"H1/one-of-many-wins", "of many holders that acquire at the same time one gets the lease, and acquire of the others returns false", 0, func(p *probe) {
		w := p.world()
		var all []*contender
		for i := range 8 {
			all = append(all, w.join(Holder{Owner: fmt.Sprint("owner-", i)}))
		}
		for range 3 {
			var wins atomic.Int32
			p.together(len(all), func(i int) {
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
	{"H2/done-context-makes-no-request", "an acquire under a context that is done makes no request and returns the context's error", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		if err := a.requireError(ctx, "under a done context"); !errors.Is(err, context.Canceled) {
			p.Errorf("the error is %v", err)
		}
		if n := len(a.requests.sentOf(leasefault.Any)); n != 0 {
			p.Errorf("%d requests were made", n)
		}
		a.acquire()
	}},
	{"H2/context-ends-the-acquire", "a context that ends during an acquire ends it at once with its error", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, p.loseRequest))
		a.orCut()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/20)
		defer cancel()
		began := time.Now()
		if err := a.requireError(ctx, "that its context ended"); ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the error is %v", err)
		}
		if took := time.Since(began); took > p.D/20+p.Slack {
			p.Errorf("it took %v, and the context ended after %v", took, p.D/20)
		}
	}},
	{"H2/contexts-end-at-any-point", "at whatever point the context of an acquire ends, it holds or is undone", CanUseAuthority, func(p *probe) {
		w := p.world()
		name := p.name
		for i, point := range []func(func()) leasefault.Fault{leasefault.Before, leasefault.After} {
			p.name = fmt.Sprint(name, i) // each fault gets a lease of its own
			ctx, cancel := context.WithCancel(p.ctx)
			a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, point(cancel))), w.join(Holder{Owner: "b"})
			if _, ok, err := a.tryAcquire(ctx); ok {
				a.aliveFor(2*p.D, "after an acquire that was granted as its context ended")
				p.need(a.release(), "release")
			} else if !errors.Is(err, context.Canceled) {
				p.Errorf("the context ended, and the error is %v", err)
			}
			a.deadFor(p.D/2, "after an acquire whose context ended")
			a.lostSoFar(0)
			b.acquire()
		}
		p.name = name
	}},
	{"H2/contexts-that-end-meanwhile", "an acquire whose context ends meanwhile holds, or leaves nothing behind: no later one returns that another holder has the lease", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, p.slow()), w.join(Holder{Owner: "b"})
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
		a.deadFor(p.D/2, "after acquires whose contexts ended")
		a.lostSoFar(0)
		b.acquire()
	}},
	{"H4/a-grant-answered-too-late-is-an-error", "a grant whose answer arrives when the lease is no longer certain is an error, and is undone", CanUseAuthority, func(p *probe) {
		w := p.world()
		w.answer(func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.ActionAcquire {
				res.MinRemaining = min(res.MinRemaining, p.D/20)
			}
		})
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10))), w.join(Holder{Owner: "b"})
		a.requireError(p.ctx, "that was answered too late")
		a.deadFor(p.D/2, "after a grant that was answered too late")
		w.unlocked("half a duration after a grant that was answered too late")
		a.lostSoFar(0)
		b.acquire()
	}},
	{"H5/acquire-while-holding-sends-nothing", "an acquire while holding makes no request and returns the token that is held", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		asked := len(a.requests.sentOf(lease.ActionAcquire))
		for range 3 {
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		if n := len(a.requests.sentOf(lease.ActionAcquire)); n != asked {
			p.Errorf("%d more acquires were sent", n-asked)
		}
	}},
	{"H5/contexts-of-acquire-end-no-holding", "the context of an acquire does not end the lease that is held, and neither does that of an acquire while holding", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		ctx, cancel := context.WithCancel(p.ctx)
		if _, ok, err := a.tryAcquire(ctx); !ok {
			p.Fatalf("Acquire: %v, %v", ok, err)
		}
		if _, ok, err := a.tryAcquire(ctx); !ok {
			p.Fatalf("Acquire while holding: %v, %v", ok, err)
		}
		cancel()
		a.aliveFor(3*p.D, "after the context of its acquire was cancelled")
		a.lostSoFar(0)
	}},
	{"H5/acquires-at-once-are-one-incarnation", "calls of acquire at the same time on one lease get the same incarnation", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayRequest(p.D/20)))
		tokens := make([]lease.Token, 8)
		p.together(len(tokens), func(i int) {
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
		a.aliveFor(2*p.D, "after acquires at once")
	}},
}
