package leasetest

import (
	"time"

	"github.com/fencedlease/lease"
)

// certaintyRules check MinRemaining and MaxRemaining.
var certaintyRules = []rule{
	{"A5/min-remaining-is-certain", "the ID stays locked for MinRemaining, counted from the time at which the request was sent", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			sent := time.Now()
			res := a.grant(req)
			if res.MinRemaining < 0 || res.MinRemaining > p.D {
				p.Fatalf("%v of a lease of %v are certain", res.MinRemaining, p.D)
			}
			p.pass(res.MinRemaining - time.Since(sent) - max(time.Nanosecond, p.Slack))
			a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
		}
	}},
	{"A5/min-remaining-of-every-answer-is-certain", "MinRemaining is never more than what is left of the lease, counted from the sending: of a read, a refusal, a change and a break too", 0, func(p *probe) {
		a := p.authority()
		id, other := p.id(), p.id()
		a.grant(acquire(id, p.D))
		end := time.Now().Add(p.D) // the lease ends at this time at the latest
		certain := func(req lease.Request, code lease.Code) {
			p.Helper()
			sent := time.Now()
			if res, err := a.ask(req); lease.CodeOf(err) != code || code == 0 && err != nil {
				p.Fatalf("%s: %v", requestText(req), err)
			} else if most := end.Sub(sent) + p.Slack; res.MinRemaining > most {
				p.Errorf("MinRemaining is %v in the answer to %s, and at most %v are left", res.MinRemaining, requestText(req), most)
			}
		}
		p.pass(p.D / 4)
		certain(lease.Request{Action: lease.ActionRead}, 0)
		certain(acquire(p.id(), p.D), lease.ErrHeldByOther)
		certain(renew(p.id()), lease.ErrIDMismatch)
		if p.can(CanChange) {
			certain(lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, 0)
			id = other
		}
		if !p.can(CanBreak) {
			return
		}
		// The break has a period of a quarter of the duration, so the lease ends within that time
		// after the answer.
		breaks := lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}
		end = time.Now().Add(p.D / 4)
		certain(breaks, 0)
		end = time.Now().Add(p.D / 4)
		p.pass(p.D / 8)
		certain(lease.Request{Action: lease.ActionRead}, 0)
		certain(renew(id), lease.ErrBroken)
		certain(breaks, 0)
	}},
	{"A5/min-remaining-of-an-infinite-lease", "MinRemaining of an infinite lease ends with its break, whose period is used as it is, or with the finite duration that it is given", CanBeInfinite, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, lease.Infinite))
		if sure := a.grant(acquire(id, p.D)).MinRemaining; sure < 0 || sure > p.D {
			p.Errorf("MinRemaining is %v for a lease that was infinite and lasts %v now", sure, p.D)
		}
		if !p.can(CanBreak) {
			return
		}
		long := 100 * p.D
		if p.Limits.MaxPeriod > 0 {
			long = p.Limits.MaxPeriod
		}
		a.grant(acquire(id, lease.Infinite))
		if left := a.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(long)}).MaxRemaining(); left > long || left < long-p.Slack {
			p.Errorf("%v remain of an infinite lease, after a break of period %v", left, long)
		}
		a.grant(release(id))
		a.grant(acquire(id, lease.Infinite))
		a.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)})
		res, err := a.ask(acquire(p.id(), p.D))
		p.history.printf("refused: %v", err)
		for what, sure := range map[string]time.Duration{"a read": a.inspect().MinRemaining, "a refusal": res.MinRemaining} {
			if sure > p.D/4 {
				p.Errorf("MinRemaining is %v in the answer to %s, for an infinite lease whose break takes %v", sure, what, p.D/4)
			}
		}
	}},
	{"A5/max-remaining-is-enough", "the lease stays locked for at most MaxRemaining, counted from the answer", 0, func(p *probe) {
		a := p.authority()
		for range 2 {
			a.grant(acquire(p.id(), p.D))
			p.pass(p.D / 4)
			res := a.inspect()
			if left := res.MaxRemaining(); left <= 0 || left > p.D {
				p.Fatalf("%v remain of a lease of %v", left, p.D)
			}
			p.pass(res.MaxRemaining() + p.Slack/4)
		}
		a.grant(acquire(p.id(), p.D))
	}},
	{"A5/nothing-is-certain-if-unlocked", "for a lease that is not locked, MinRemaining and MaxRemaining are zero", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		for _, res := range []lease.Result{a.grant(release(id)), a.inspect()} {
			if res.MinRemaining != 0 || res.MaxRemaining() != 0 {
				p.Errorf("of a released lease MinRemaining is %v and MaxRemaining is %v", res.MinRemaining, res.MaxRemaining())
			}
		}
	}},
}
