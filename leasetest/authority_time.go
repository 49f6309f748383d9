package leasetest

import (
	"time"

	"github.com/fencedlease/lease"
)

var certaintyRules = []rule{
	{"A5/sure-is-certain", "for as long as sure says, counted from the sending, the ID stays locked", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			sent := time.Now()
			res := a.grant(req)
			if res.Sure <= 0 || res.Sure > p.D {
				p.Fatalf("%v of a lease of %v are certain", res.Sure, p.D)
			}
			p.pass(res.Sure - time.Since(sent) - max(time.Nanosecond, p.Slack))
			a.refuse(acquire(p.id(), p.D), lease.ErrHeld)
		}
	}},
	{"A5/remaining-is-enough", "what remains, counted from the answer, is how long the lease stays locked at most, for whoever asks", 0, func(p *probe) {
		a := p.authority()
		for range 2 {
			a.grant(acquire(p.id(), p.D))
			p.pass(p.D / 4)
			res := a.inspect()
			if left := res.Remaining(); left <= 0 || left > p.D {
				p.Fatalf("%v remain of a lease of %v", left, p.D)
			}
			p.pass(res.Remaining() + p.Slack/4)
		}
		a.grant(acquire(p.id(), p.D))
	}},
	{"A5/nothing-is-sure-unlocked", "of a lease that is not locked nothing is sure and nothing remains", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		for _, res := range []lease.Result{a.grant(release(id)), a.inspect()} {
			if res.Sure != 0 || res.Remaining() != 0 {
				p.Errorf("of a released lease %v are sure and %v remain", res.Sure, res.Remaining())
			}
		}
	}},
	{"A7/limits-are-kept", "a duration or a period out of the stated limits is refused at the grant; infinite is none of them", 0, func(p *probe) {
		a := p.authority()
		l := p.Limits
		if l.MinDuration > 1 {
			a.refuse(acquire(p.id(), l.MinDuration-1), lease.ErrDuration)
		}
		if l.MaxDuration > 0 {
			a.refuse(acquire(p.id(), l.MaxDuration+1), lease.ErrDuration)
			a.refuse(acquire(p.id(), lease.Infinite-1), lease.ErrDuration)
		}
		if l.MaxPeriod > 0 && p.Lacks&Breaking == 0 {
			a.refuse(lease.Request{Action: lease.Break, Period: lease.In(l.MaxPeriod + 1)}, lease.ErrPeriod)
		}
		if state := a.inspect().Record.State; state != lease.Available {
			p.Errorf("what was refused left the lease %v", state)
		}
		if p.Lacks&Infinite == 0 {
			a.grant(acquire(p.id(), lease.Infinite))
		} else {
			a.grant(acquire(p.id(), p.D))
		}
	}},
	{"A8/anybody-may-break", "a break needs no ID, and tells how long the lease stays locked", Breaking, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		left, err := lease.Revoke(p.ctx, a, p.name, lease.In(p.D/4))
		if err != nil || left <= 0 || left > p.D/4 {
			p.Fatalf("a break of period %v leaves %v: %v", p.D/4, left, err)
		}
		a.refuse(acquire(p.id(), p.D), lease.ErrHeld)
		a.refuse(renew(id), lease.ErrBroken)
		p.pass(left + p.Slack/4)
		a.grant(acquire(p.id(), p.D))
	}},
}
