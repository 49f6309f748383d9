package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

var acquireRules = []rule{
	{"H1/granted-is-held", "an acquire that returns true holds now", 0, func(p *probe) {
		p.world().join(Holder{Owner: "a"}).acquire()
	}},
	{"H1/held-by-another-is-false", "an acquire of what another holds returns false without an error, and hurts nobody", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		b.denied("that another holds")
		a.aliveFor(2*p.D, "after another tried")
		b.toldSoFar(0)
	}},
	{"H1/breaking-for-another-is-false", "an acquire of a lease that is breaking under another ID returns false without an error", Injecting | Breaking, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		w.revoke(p.D / 2)
		b.denied("that is breaking")
	}},
	{"H1/unknown-is-an-error", "an acquire of unknown outcome returns an error, and is never believed", Injecting, func(p *probe) {
		w := p.world()
		for i, fault := range []Fault{FailRequest, FailAnswer, LoseRequest, LoseAnswer} {
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"}, Nth(1, lease.Acquire, fault))
			a.fails(p.ctx, "whose outcome is unknown")
			a.deadFor(p.D, "after an acquire of unknown outcome")
			a.toldSoFar(0)
		}
	}},
	{"H1/other-refusals-are-errors", "a refusal that does not say that another has the lease is an error", Injecting, func(p *probe) {
		w := p.world()
		for i, code := range []lease.Code{lease.ErrEpochLimit, lease.ErrDuration, lease.ErrConflict, lease.ErrCorrupt} {
			truth := w.truth
			w.truth = Answer(truth, func(req lease.Request, res *lease.Result, err *error) {
				if req.Action == lease.Acquire {
					_, _ = truth.Do(p.ctx, fmt.Sprint(p.name, i), release(req.Proposed)) // it was not granted
					*res, *err = lease.Result{}, &lease.OpError{Op: "acquire", Name: p.name, Err: code}
				}
			})
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"})
			if err := a.fails(p.ctx, "that is refused as "+code.String()); lease.CodeOf(err) != code {
				p.Errorf("the error is %v", err)
			}
			a.deadFor(p.D/2, "after a refusal")
			w.truth = truth
		}
	}},
	{"H1/the-record's-duration-counts", "how long another is waited for is the duration that he was granted, not one's own", Injecting, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "a", Duration: 3 * p.D}, From(1, lease.Renew, FailRequest))
		b := w.join(Holder{Owner: "b"})
		a.acquire()
		p.pass(2 * p.D)
		b.denied("that was granted for longer than its own duration")
		p.pass(p.D + p.Slack/4)
		b.acquire()
	}},
	{"H1/acquire-does-not-wait", "an acquire of what another holds returns at once", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		a.acquire()
		began := time.Now()
		b.denied("that another holds")
		if took := time.Since(began); took > p.Slack {
			p.Errorf("it took %v", took)
		}
	}},
	{"H1/one-of-many-wins", "of many that acquire at the same time one holds, and the others are told false", 0, func(p *probe) {
		w := p.world()
		var all []*party
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
		if err := a.fails(ctx, "under a done context"); !errors.Is(err, context.Canceled) {
			p.Errorf("the error is %v", err)
		}
		if n := len(a.wire.of(Any)); n != 0 {
			p.Errorf("%d requests were made", n)
		}
		a.acquire()
	}},
	{"H2/context-ends-the-acquire", "a context that ends during an acquire ends it at once with its error", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, LoseRequest))
		ctx, cancel := context.WithTimeout(p.ctx, p.D/20)
		defer cancel()
		began := time.Now()
		if err := a.fails(ctx, "that its context ended"); !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the error is %v", err)
		}
		if took := time.Since(began); took > p.D/20+p.Slack {
			p.Errorf("it took %v, and the context ended after %v", took, p.D/20)
		}
	}},
	{"H2/contexts-end-at-any-point", "at whatever point the context of an acquire ends, it holds or is undone", Injecting, func(p *probe) {
		w := p.world()
		name := p.name
		for i, point := range []func(func()) Fault{Before, After} {
			p.name = fmt.Sprint(name, i) // a lease of its own
			ctx, cancel := context.WithCancel(p.ctx)
			a, b := w.join(Holder{Owner: "a"}, Nth(1, lease.Acquire, point(cancel))), w.join(Holder{Owner: "b"})
			if _, ok, err := a.tryAcquire(ctx); ok {
				a.aliveFor(2*p.D, "after an acquire that was granted as its context ended")
				p.need(a.release(), "release")
			} else if !errors.Is(err, context.Canceled) {
				p.Errorf("the context ended, and the error is %v", err)
			}
			a.deadFor(p.D/2, "after an acquire whose context ended")
			a.toldSoFar(0)
			b.acquire()
		}
		p.name = name
	}},
	{"H3/a-late-grant-is-undone", "the grant of an acquire that was abandoned is undone by its ID, after the attempt has settled, and never surfaces", Injecting, func(p *probe) {
		w := p.world()
		for i, fault := range []Fault{
			Detach(p.TB, DelayRequest(p.D/10)), // it lands after the caller has gone
			DelayAnswer(p.D / 10),
			LoseAnswer,
		} {
			name := p.name
			p.name = fmt.Sprint(name, i) // a lease of its own
			a, b := w.join(Holder{Owner: "a"}, Nth(1, lease.Acquire, fault)), w.join(Holder{Owner: "b"})
			a.abandon(p.D / 20)
			a.deadFor(p.D/2, "after an acquire that was abandoned")
			w.unlocked("half a duration after an abandoned acquire")
			if a.wire.crossed {
				p.Errorf("a release was sent while the acquire was in flight")
			}
			a.toldSoFar(0)
			b.acquire()
			p.name = name
		}
	}},
	{"H3/attempts-do-not-overlap", "no acquire is sent while an earlier one, abandoned or not, is in flight", Injecting, func(p *probe) {
		gate := p.gate()
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, Detach(p.TB, gate.HoldRequest)))
		a.abandon(p.D / 40)
		a.abandon(p.D / 40)
		gate.Open()
		p.pass(p.D / 2)
		if n := a.wire.atOnce(lease.Acquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.acquire()
	}},
	{"H3/undo-has-a-context-of-its-own", "the undoing of an abandoned acquire is not ended by the caller's context, and does not hang for ever", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, DelayAnswer(p.D/10)), Nth(1, lease.Release, LoseRequest))
		a.abandon(p.D / 20)
		p.pass(2 * p.D)
		undos := a.wire.of(lease.Release)
		if len(undos) == 0 {
			p.Fatalf("nothing was undone")
		}
		if undos[0].done {
			p.Errorf("the undoing was sent under a context that was done already")
		}
		a.acquire()
	}},
	{"H3/an-infinite-orphan-is-settled", "an infinite lease whose acquire comes after its undoing does not stay with nobody", Injecting | Infinite, func(p *probe) {
		gate := p.gate()
		w := p.worldOver(ScriptStore(memory.New(nil), Nth(1, Swap, Detach(p.TB, gate.HoldRequest))))
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		a.abandon(p.D / 20)
		p.pass(10 * p.D)
		gate.Open()
		p.pass(10 * p.D)
		a.dead("after an acquire that was abandoned")
		w.unlocked("long after an abandoned acquire arrived")
	}},
	{"H4/a-grant-answered-too-late-is-an-error", "a grant that is answered when nothing is certain any more is an error, and undone", Injecting, func(p *probe) {
		w := p.world()
		w.truth = Answer(w.truth, func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.Acquire {
				res.Sure = min(res.Sure, p.D/20)
			}
		})
		a, b := w.join(Holder{Owner: "a"}, Nth(1, lease.Acquire, DelayAnswer(p.D/10))), w.join(Holder{Owner: "b"})
		a.fails(p.ctx, "that was answered too late")
		a.deadFor(p.D/2, "after a grant that was answered too late")
		w.unlocked("half a duration after a grant that was answered too late")
		a.toldSoFar(0)
		b.acquire()
	}},
	{"H5/acquire-while-holding-asks-nobody", "an acquire while holding makes no request and returns the token that is held", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		asked := len(a.wire.of(lease.Acquire))
		for range 3 {
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		if n := len(a.wire.of(lease.Acquire)); n != asked {
			p.Errorf("%d more acquires were sent", n-asked)
		}
	}},
	{"H5/contexts-of-acquire-end-no-holding", "the context of an acquire, and of one while holding, cannot end what is held", 0, func(p *probe) {
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
		a.toldSoFar(0)
	}},
	{"H5/acquires-at-once-are-one-incarnation", "calls of acquire at the same time on one lease get the same incarnation", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, DelayRequest(p.D/20)))
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
		if n := a.wire.atOnce(lease.Acquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.aliveFor(2*p.D, "after acquires at once")
	}},
	{"H6/each-incarnation-has-its-ID", "no two incarnations have the same ID", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		seen := map[lease.ID]bool{}
		for range 4 {
			a.acquire()
			a.wire.fresh(p, seen)
			p.need(a.release(), "release")
		}
	}},
	{"H6/an-abandoned-ID-is-retired", "the ID of an acquire that was abandoned is not proposed again", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, LoseRequest))
		seen := map[lease.ID]bool{}
		a.abandon(p.D / 20)
		a.wire.fresh(p, seen)
		p.pass(p.D)
		a.acquire()
		a.wire.fresh(p, seen)
	}},
	{"H6/a-queued-release-retires-the-ID", "an ID for which a release is queued is not proposed again", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, First(2, lease.Release, FailRequest))
		seen := map[lease.ID]bool{}
		a.acquire()
		a.wire.fresh(p, seen)
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		a.until(5, "after a release that did not arrive")
		a.wire.fresh(p, seen)
	}},
	{"H6/unknown-does-not-exclude-itself", "after an acquire of unknown outcome the next is not told that another has it", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Acquire, FailAnswer))
		a.fails(p.ctx, "whose answer was lost")
		a.until(3, "after one whose answer was lost")
	}},
	{"H6/a-release-settles-an-unknown-acquire", "a release after an acquire of unknown outcome gives up what that may have got", Injecting, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, Nth(1, lease.Acquire, FailAnswer)), w.join(Holder{Owner: "b"})
		seen := map[lease.ID]bool{}
		a.fails(p.ctx, "whose answer was lost")
		a.wire.fresh(p, seen)
		p.need(a.release(), "release")
		w.unlocked("after a release that returned nil")
		b.acquire()
		p.need(b.release(), "release")
		a.acquire()
		a.wire.fresh(p, seen)
	}},
	{"H7/a-lost-ID-does-not-exclude-its-holder", "a holder that acquires as soon as it has lost is not told that another has the lease", Injecting, func(p *probe) {
		var up atomic.Bool
		a := p.world().join(Holder{Owner: "a"}, Always(lease.Renew, If(func() bool { return !up.Load() }, FailRequest)))
		again := make(chan bool, 1)
		a.OnLost(func(error) {
			up.Store(true)
			ok, err := a.Acquire(p.ctx) // the authority may have it locked for a moment yet
			again <- ok || err != nil
		})
		a.acquire()
		p.pass(p.D + p.Slack)
		a.told(1)
		if !<-again {
			p.Errorf("Acquire returned false, nil: nobody else has it")
		}
		a.until(3, "after a loss")
	}},
	{"H7/an-unsettled-release-is-an-error", "an acquire that finds its own earlier ID in force retries the release, and does not say that another has it", Injecting, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, Nth(1, lease.Release, FailRequest))
		a.acquire()
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		a.dead("after a release that erred")
		a.until(3, "after a release that erred")
	}},
}

// abandon acquires under a context that ends after d.
func (p *party) abandon(d time.Duration) {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, d)
	defer cancel()
	if err := p.fails(ctx, "that was abandoned"); !errors.Is(err, context.DeadlineExceeded) {
		p.w.Errorf("%s: the error is %v", p.who, err)
	}
}

// until acquires up to n times, and requires that it is granted in the end, and never told
// that another has it.
func (p *party) until(n int, when string) {
	p.w.Helper()
	for range n {
		_, ok, err := p.tryAcquire(p.w.ctx)
		if ok {
			p.alive("after an Acquire that was granted")
			return
		}
		if err == nil {
			p.w.Fatalf("%s: Acquire %s returned false, nil: nobody else has it", p.who, when)
		}
		p.w.pass(p.w.D / 50)
	}
	p.w.Fatalf("%s: %d calls of Acquire %s were not granted", p.who, n, when)
}

// fresh requires that the last acquire proposed an ID that was not seen yet.
func (w *wire) fresh(p *probe, seen map[lease.ID]bool) {
	p.Helper()
	id := w.proposed()
	if seen[id] {
		p.Errorf("the ID %v was proposed again", id)
	}
	seen[id] = true
}
