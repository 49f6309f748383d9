package leasetest

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

var againRules = []rule{
	{"H5/acquire-while-holding-asks-nobody", "an acquire while holding makes no request and returns the token that is held", 0, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		tok := a.acquire()
		asked := len(a.requests.of(lease.ActionAcquire))
		for range 3 {
			if again := a.acquire(); again != tok {
				p.Errorf("the token was %q, and is %q", tok, again)
			}
		}
		if n := len(a.requests.of(lease.ActionAcquire)); n != asked {
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
		if n := a.requests.atOnce(lease.ActionAcquire); n > 1 {
			p.Errorf("%d acquires were in flight at once", n)
		}
		a.aliveFor(2*p.D, "after acquires at once")
	}},
	{"H6/each-incarnation-has-its-ID", "no two incarnations have the same ID", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		seen := map[lease.ID]bool{}
		for range 4 {
			a.acquire()
			a.requests.fresh(p, seen)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.requests.fresh(p, seen)
		a.isLost(1)
		a.mend()
		a.until(5, "after a loss")
		a.requests.fresh(p, seen)
	}},
	{"H6/an-abandoned-ID-is-retired", "the ID of an acquire that was abandoned is not proposed again", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.LoseRequest))
		seen := map[lease.ID]bool{}
		a.abandon(p.D / 20)
		a.requests.fresh(p, seen)
		p.pass(p.D)
		a.acquire()
		a.requests.fresh(p, seen)
	}},
	{"H6/a-queued-release-retires-the-ID", "an ID for which a release is queued is not proposed again", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.First(2, lease.ActionRelease, leasefault.FailRequest))
		seen := map[lease.ID]bool{}
		a.acquire()
		a.requests.fresh(p, seen)
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		a.until(5, "after a release that did not arrive")
		a.requests.fresh(p, seen)
	}},
	{"H6/unknown-does-not-exclude-itself", "after an acquire of unknown outcome the next is not told that another has it", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer))
		a.fails(p.ctx, "whose answer was lost")
		a.until(3, "after one whose answer was lost")
	}},
	{"H6/a-release-settles-an-unknown-acquire", "a release after an acquire of unknown outcome gives up what that may have got", CanUseAuthority, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer)), w.join(Holder{Owner: "b"})
		seen := map[lease.ID]bool{}
		a.fails(p.ctx, "whose answer was lost")
		a.requests.fresh(p, seen)
		p.need(a.release(), "release")
		w.unlocked("after a release that returned nil")
		b.acquire()
		p.need(b.release(), "release")
		a.acquire()
		a.requests.fresh(p, seen)
	}},
	{"H7/a-lost-ID-does-not-exclude-its-holder", "a holder that acquires as soon as it has lost is not told that another has the lease", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		again := make(chan bool, 1)
		a.OnLost(func(error) {
			a.mend()
			ok, err := a.Acquire(p.ctx) // the authority may have it locked for a moment yet
			again <- ok || err != nil
		})
		a.acquire()
		a.isLost(1)
		if !<-again {
			p.Errorf("Acquire returned false, nil: nobody else has it")
		}
		a.until(3, "after a loss")
	}},
	{"H7/an-unsettled-release-is-an-error", "an acquire that finds its own earlier ID in force retries the release, and does not say that another has it", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.releaseInVain()
		a.dead("after a release that erred")
		a.until(3, "after a release that erred")
	}},
	{"M4/tokens-rise", "each acquire has a newer token than every one before, whoever holds, and renewals keep it", hasToken, func(p *probe) {
		w := p.world()
		both := []*contender{w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})}
		var last lease.Token
		for i := range 12 {
			a := both[i/2%2] // twice the same, then the other
			tok := a.acquire()
			if tok.Validate() != nil || tok.Compare(last) <= 0 {
				p.Errorf("grant %d has the token %q, after %q", i+1, tok, last)
			}
			p.pass(p.D / 2)
			if again := a.acquire(); again != tok {
				p.Errorf("after a renewal the token is %q, and was %q", again, tok)
			}
			last = tok
			p.need(a.release(), "release")
		}
	}},
}

// until acquires up to n times, and requires that it is granted in the end, and never told
// that another has it.
func (p *contender) until(n int, when string) {
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
func (w *requests) fresh(p *probe, seen map[lease.ID]bool) {
	p.Helper()
	id := w.proposed()
	if seen[id] {
		p.Errorf("the ID %v was proposed again", id)
	}
	seen[id] = true
}
