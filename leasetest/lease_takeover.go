package leasetest

import (
	"errors"
	"slices"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

var takeOverRules = []rule{
	{"H8/owners-exclude-themselves", "without take-over, equal owners exclude each other", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same"}), w.join(Holder{Owner: "same"})
		a.acquire()
		b.denied("that another of the same owner holds")
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
		a.lostError(a.lostTimes(1), old, lease.ErrTakenOver, lease.ErrIDMismatch, lease.ErrOver, lease.ErrNotPresent)
		b.aliveFor(3*p.D, "after it has taken over")
		a.dead("after it was taken over")
		a.lostSoFar(1)
	}},
	{"H8/take-over-asks-first", "with take-over an acquire comes first, and a change only after a refusal", CanTakeOver | CanChange | CanUseAuthority, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		if n := len(a.requests.of(lease.ActionChange)); n != 0 {
			p.Errorf("%d changes of a lease that was free", n)
		}
		b.acquire()
		all := slices.DeleteFunc(b.requests.of(leasefault.Any), func(s sent) bool { return s.Action == lease.ActionRead })
		if len(all) != 3 || all[0].Action != lease.ActionAcquire || all[1].Action != lease.ActionChange || all[2].Action != lease.ActionAcquire {
			p.Errorf("the requests are %d, and must be acquire, change, acquire", len(all))
		}
	}},
	{"H8/take-over-spares-other-owners", "take-over takes nothing from another owner", CanTakeOver | CanChange, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a", TakeOver: true}), w.join(Holder{Owner: "b", TakeOver: true})
		a.acquire()
		b.denied("that another owner holds")
		a.aliveFor(p.D, "after another owner tried")
	}},
	{"H8/take-over-spares-a-break", "take-over takes nothing that is breaking", CanTakeOver | CanChange | canRevoke | CanBreak, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		a.acquire()
		w.revoke(p.D / 2)
		b.denied("that is breaking")
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
		if err := b.fails(p.ctx, "that cannot take over"); !errors.Is(err, errors.ErrUnsupported) {
			p.Errorf("the error is %v", err)
		}
	}},
	{"H8/no-owner-is-an-owner-of-its-own", "a holder without an owner is taken over by nobody", CanTakeOver | CanChange, func(p *probe) {
		w := p.world()
		a, b, c := w.join(Holder{}), w.join(Holder{}), w.join(Holder{Owner: "c", TakeOver: true})
		a.acquire()
		b.denied("that a holder without an owner holds")
		c.denied("that a holder without an owner holds")
		a.aliveFor(p.D, "after others tried")
	}},
}
