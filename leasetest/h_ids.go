package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// idRules check the IDs of a holder, and take-overs.
var idRules = []rule{
	{"H3/a-late-grant-is-undone", "the grant of an abandoned acquire is released by its ID after the attempt has settled, and is never believed", CanUseAuthority, func(p *probe) {
		w := p.world()
		for i, fault := range []leasefault.Fault{
			leasefault.Detach(p.TB, leasefault.DelayRequest(p.D/10)), // arrives after the caller has returned
			leasefault.DelayAnswer(p.D / 10),
			p.loseAnswer,
		} {
			name := p.name
			p.name = fmt.Sprint(name, i) // each fault gets a lease of its own
			a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, fault)), w.join(Holder{Owner: "b"})
			a.abandon(p.D / 20)
			a.deadFor(p.D/2, "after an acquire that was abandoned")
			w.unlocked("half a duration after an abandoned acquire")
			if a.requests.crossed {
				p.Errorf("a release was sent while the acquire was in flight")
			}
			a.lostSoFar(0)
			b.acquire()
			p.name = name
		}
	}},
	{"H3/attempts-do-not-overlap", "no acquire is sent while an earlier one, abandoned or not, is in flight", CanUseAuthority, func(p *probe) {
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
	{"H3/undo-has-a-context-of-its-own", "the release after an abandoned acquire does not end with the caller's context, and does not hang forever", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(p.D/10)), leasefault.Nth(1, lease.ActionRelease, p.loseRequest))
		a.abandon(p.D / 20)
		p.pass(2 * p.D)
		undos := a.requests.sentOf(lease.ActionRelease)
		if len(undos) == 0 {
			p.Fatalf("nothing was undone")
		}
		if undos[0].done {
			p.Errorf("the undoing was sent under a context that was done already")
		}
		a.acquire()
	}},
	{"H3/an-infinite-orphan-is-settled", "an infinite lease whose acquire arrives after its release does not stay locked without a holder", CanUseAuthority | CanBeInfinite, func(p *probe) {
		gate := p.gate()
		w := p.worldOver(leasefault.ScriptStore(memory.New(nil), leasefault.Nth(1, leasefault.Swap, leasefault.Detach(p.TB, gate.HoldRequest))))
		a := w.join(Holder{Owner: "a", Duration: lease.Infinite})
		a.abandon(p.D / 20)
		p.pass(5 * p.D)
		gate.Open()
		p.pass(5 * p.D)
		a.dead("after an acquire that was abandoned")
		w.unlocked("long after an abandoned acquire arrived")
	}},
	{"H6/each-incarnation-has-its-ID", "no two incarnations have the same ID", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		seen := map[lease.ID]bool{}
		for range 4 {
			a.acquire()
			a.requests.requireNewID(p, seen)
			p.need(a.release(), "release")
		}
		a.acquire()
		a.requests.requireNewID(p, seen)
		a.loseOnce(1)
		a.mend()
		a.acquireWithin(5, "after a loss")
		a.requests.requireNewID(p, seen)
	}},
	{"H6/an-abandoned-ID-is-retired", "the ID of an acquire that was abandoned is not proposed again", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, p.loseRequest))
		seen := map[lease.ID]bool{}
		a.abandon(p.D / 20)
		a.requests.requireNewID(p, seen)
		p.pass(p.D)
		a.acquire()
		a.requests.requireNewID(p, seen)
	}},
	{"H6/a-queued-release-retires-the-ID", "an ID for which a release is queued is not proposed again", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.First(2, lease.ActionRelease, leasefault.FailRequest))
		seen := map[lease.ID]bool{}
		a.acquire()
		a.requests.requireNewID(p, seen)
		if a.release() == nil {
			p.Errorf("a release that did not arrive returned nil")
		}
		a.acquireWithin(5, "after a release that did not arrive")
		a.requests.requireNewID(p, seen)
	}},
	{"H6/unknown-does-not-exclude-itself", "after an acquire of unknown outcome the next one does not return that another holder has the lease", CanUseAuthority, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer))
		a.requireError(p.ctx, "whose answer was lost")
		a.acquireWithin(3, "after one whose answer was lost")
	}},
	{"H6/a-release-settles-an-unknown-acquire", "a release after an acquire of unknown outcome gives up what that may have got", CanUseAuthority, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer)), w.join(Holder{Owner: "b"})
		seen := map[lease.ID]bool{}
		a.requireError(p.ctx, "whose answer was lost")
		a.requests.requireNewID(p, seen)
		p.need(a.release(), "release")
		w.unlocked("after a release that returned nil")
		b.acquire()
		p.need(b.release(), "release")
		a.acquire()
		a.requests.requireNewID(p, seen)
	}},
	{"H7/a-lost-ID-does-not-exclude-its-holder", "an acquire right after a loss does not return that another holder has the lease", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		again := make(chan bool, 1)
		a.OnLost(func(error) {
			a.mend()
			ok, err := a.Acquire(p.ctx) // the lease may still be locked at the authority for a moment
			again <- ok || err != nil
		})
		a.acquire()
		a.loseOnce(1)
		if !<-again {
			p.Errorf("Acquire returned false, nil, but no other holder has the lease")
		}
		a.acquireWithin(3, "after a loss")
	}},
	{"H7/an-unsettled-release-is-an-error", "an acquire that finds its own earlier ID in force retries the release, and does not return that another holder has the lease", canCut, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		a.acquire()
		a.releaseInVain()
		a.dead("after a release that erred")
		a.acquireWithin(3, "after a release that erred")
	}},
	{"H8/owners-exclude-themselves", "without take-over, equal owners exclude each other", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same"}), w.join(Holder{Owner: "same"})
		a.acquire()
		b.requireDenied("that another of the same owner holds")
		a.aliveFor(p.D, "after one of the same owner tried")
	}},
	{"H8/take-over", "with take-over a holder of the same owner gets the lease and outranks the earlier one, which loses it and never takes it back", CanTakeOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		old := a.acquire()
		if tok := b.acquire(); p.can(hasToken) && tok.Compare(old) <= 0 {
			p.Errorf("the token is %q, and that of the earlier holder %q", tok, old)
		}
		p.pass(p.D / 2)
		a.dead("half a duration after it was taken over")
		a.requireLostError(a.requireLosses(1), old, lease.ErrTakenOver, lease.ErrIDMismatch, lease.ErrOver, lease.ErrNotPresent)
		b.aliveFor(3*p.D, "after it has taken over")
		a.dead("after it was taken over")
		a.lostSoFar(1)
	}},
	{"H8/take-over-asks-first", "with take-over an acquire comes first, and a change only after a refusal", CanTakeOver | CanChange | CanUseAuthority, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		if n := len(a.requests.sentOf(lease.ActionChange)); n != 0 {
			p.Errorf("%d changes of a lease that was free", n)
		}
		b.acquire()
		all := slices.DeleteFunc(b.requests.sentOf(leasefault.Any), func(s sent) bool { return s.Action == lease.ActionRead })
		if len(all) != 3 || all[0].Action != lease.ActionAcquire || all[1].Action != lease.ActionChange || all[2].Action != lease.ActionAcquire {
			p.Errorf("the requests are %d, and must be acquire, change, acquire", len(all))
		}
	}},
	{"H8/take-over-spares-other-owners", "take-over takes nothing from another owner", CanTakeOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a", TakeOver: true}), w.join(Holder{Owner: "b", TakeOver: true})
		a.acquire()
		b.requireDenied("that another owner holds")
		a.aliveFor(p.D, "after another owner tried")
	}},
	{"H8/take-over-spares-a-break", "take-over takes nothing that is breaking", CanTakeOver | CanChange | canRevoke | CanBreak, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		w.revoke(p.D / 2)
		b.requireDenied("that is breaking")
	}},
	{"H8/take-over-that-meets-a-break-releases", "a take-over that meets a break halfway gives up what it has", CanTakeOver | CanChange | CanUseAuthority | CanBreak, func(p *probe) {
		w := p.world()
		a := w.join(Holder{Owner: "same", TakeOver: true})
		b := w.join(Holder{Owner: "same", TakeOver: true}, leasefault.Nth(1, lease.ActionChange, leasefault.After(func() { w.revoke(p.D * 3 / 4) })))
		a.acquire()
		if _, ok, _ := b.tryAcquire(p.ctx); ok {
			p.Errorf("Acquire returned true for a lease that is breaking")
		}
		b.deadFor(p.D/4, "after a take-over that met a break")
		w.unlocked("after a take-over that met a break")
	}},
	{"H8/take-over-needs-the-ID", "take-over from an authority that hides IDs is errors.ErrUnsupported", CanTakeOver | CanChange | CanUseAuthority, func(p *probe) {
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
	{"H8/no-owner-is-an-owner-of-its-own", "no holder takes over a lease from a holder without an owner", CanTakeOver | CanChange, func(p *probe) {
		w := p.world()
		a, b, c := w.join(Holder{}), w.join(Holder{}), w.join(Holder{Owner: "c", TakeOver: true})
		a.acquire()
		b.requireDenied("that a holder without an owner holds")
		c.requireDenied("that a holder without an owner holds")
		a.aliveFor(p.D, "after others tried")
	}},
}

// abandon calls Acquire with a timeout of d, and requires that the timeout ends the call.
func (p *contender) abandon(d time.Duration) {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, d)
	defer cancel()
	if err := p.requireError(ctx, "that was abandoned"); !errors.Is(err, context.DeadlineExceeded) {
		p.w.Errorf("%s: the error is %v", p.who, err)
	}
}

// acquireWithin calls Acquire until a call is granted, at most n times. It requires that a call is
// granted, and that every earlier call returns an error.
func (p *contender) acquireWithin(n int, when string) {
	p.w.Helper()
	for range n {
		_, ok, err := p.tryAcquire(p.w.ctx)
		if ok {
			p.alive("after an Acquire that was granted")
			return
		}
		if err == nil {
			p.w.Fatalf("%s: Acquire %s returned false, nil, but no other holder has the lease", p.who, when)
		}
		p.w.pass(p.w.D / 50)
	}
	p.w.Fatalf("%s: %d calls of Acquire %s were not granted", p.who, n, when)
}

// requireNewID requires that the ID in the last acquire is not in seen, and then adds that ID to
// seen.
func (w *requests) requireNewID(p *probe, seen map[lease.ID]bool) {
	p.Helper()
	id := w.proposed()
	if seen[id] {
		p.Errorf("the ID %v was proposed again", id)
	}
	seen[id] = true
}
