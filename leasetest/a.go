package leasetest

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// answerRules check single answers of an authority.
var answerRules = []rule{
	{"A1/granted-shows-the-record", "a grant shows the record after the action, and the authority's time", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		res := a.grant(lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "worker-1", Duration: p.D})
		r := res.Record
		if r.State != lease.Leased || r.ID != id || r.Epoch == 0 || res.Now.IsZero() || r.Validate() != nil {
			p.Errorf("the grant shows %s at %s: %v", outcomeText(r, nil), timeText(res.Now), r.Validate())
		}
		if p.can(CanShowRecords) && (r.Owner != "worker-1" || r.Duration != p.D) {
			p.Errorf("the grant shows owner %q and duration %v", r.Owner, r.Duration)
		}
		if seen := a.inspect(); p.can(CanShowRecords) && !p.sameRecords(seen.Record, r) {
			p.Errorf("the grant shows %s, and a read %s", recordText(r), recordText(seen.Record))
		}
	}},
	{"A1/refused-is-a-code", "a refusal is an OpError around a refusing Code, and shows the record that decided", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		res, err := a.ask(acquire(p.id(), p.D))
		op := (*lease.OpError)(nil)
		if !errors.Is(err, lease.ErrHeldByOther) || !lease.CodeOf(err).Refusal() || !errors.As(err, &op) || op.Op != "acquire" || op.Name != p.name {
			p.Errorf("the refusal is %v", err)
		}
		if p.can(CanShowRecords) && (res.Record.ID != id || res.Record.State != lease.Leased || res.Now.IsZero()) {
			p.Errorf("the refusal shows %s at %s", outcomeText(res.Record, nil), timeText(res.Now))
		}
	}},
	{"A4/answers-are-fresh", "a refusal, and a read, are decided on the record as it is, not as it was", 0, func(p *probe) {
		a := p.authority()
		for range 10 {
			one, two := p.id(), p.id()
			a.grant(acquire(one, p.D))
			a.refuse(acquire(two, p.D), lease.ErrHeldByOther)
			a.grant(release(one))
			if state := a.inspect().Record.State; state != lease.Available {
				p.Errorf("a read after the release shows %v", state)
			}
			a.grant(acquire(two, p.D))
			a.refuse(renew(one), lease.ErrIDMismatch)
			a.grant(release(two))
		}
	}},
	{"A6/done-context-makes-no-request", "a request whose context is done already is not carried out and gets the context's error", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		before := a.inspect()
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id), release(id), {Action: lease.ActionRead}, {Action: lease.ActionWrite, ID: id},
			{Action: lease.ActionChange, ID: id, Proposed: p.id()}, {Action: lease.ActionBreak, Period: lease.Grace(0)}} {
			if p.lacksAbility(req) {
				continue
			}
			if _, err := a.Do(ctx, p.name, req); !errors.Is(err, context.Canceled) {
				p.Errorf("%s: %v", requestText(req), err)
			}
		}
		if after := a.inspect(); !p.sameRecords(before.Record.At(after.Now), after.Record) {
			p.Errorf("the record was %s, and is %s", recordText(before.Record), recordText(after.Record))
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
		if l.MaxPeriod > 0 && p.can(CanBreak) {
			a.refuse(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(l.MaxPeriod + 1)}, lease.ErrPeriod)
		}
		if state := a.inspect().Record.State; state != lease.Available {
			p.Errorf("what was refused left the lease %v", state)
		}
		if p.can(CanBeInfinite) {
			a.grant(acquire(p.id(), lease.Infinite))
		} else {
			a.grant(acquire(p.id(), p.D))
		}
	}},
	{"A8/anybody-may-break", "a break needs no ID, and returns how long the lease stays locked", CanBreak, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		left, err := lease.Break(p.ctx, a, p.name, lease.Grace(p.D/4))
		if err != nil || left <= 0 || left > p.D/4 {
			p.Fatalf("a break of period %v leaves %v: %v", p.D/4, left, err)
		}
		a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
		a.refuse(renew(id), lease.ErrBroken)
		p.pass(left + p.Slack/4)
		a.grant(acquire(p.id(), p.D))
	}},
}
