package leasetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

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
		if seen := a.inspect(); p.can(CanShowRecords) && !p.same(seen.Record, r) {
			p.Errorf("the grant shows %s, and a read %s", recordText(r), recordText(seen.Record))
		}
	}},
	{"R3/what-is-granted-is-shown", "an owner and a duration are shown as they were given, and a renewal and a break change neither", CanShowRecords, func(p *probe) {
		a := p.authority()
		id := p.id()
		durations := []time.Duration{p.D, 100*24*time.Hour + 1, p.D}
		if p.Limits.MaxDuration > 0 {
			durations[1] = p.Limits.MaxDuration
		}
		for i, owner := range []string{" Worker One ", strings.Repeat("o", lease.MaxLabel), ""} {
			requests := []lease.Request{{Action: lease.ActionAcquire, Proposed: id, Owner: owner, Duration: durations[i]}, renew(id), {Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}, release(id)}
			for _, req := range requests {
				if p.cannot(req) {
					continue
				}
				a.grant(req)
				if r := a.inspect().Record; req.Action != lease.ActionRelease && (r.Owner != owner || r.Duration != durations[i]) {
					p.Errorf("after %s the owner is %q and the duration %v; granted were %q and %v", requestText(req), r.Owner, r.Duration, owner, durations[i])
				}
			}
		}
	}},
	{"R1/every-answer-shows-a-valid-record", "in every state the record has an ID, a duration, an until and an epoch where that state has them, and only there", CanShowRecords, func(p *probe) {
		a := p.authority()
		id := p.id()
		valid := func(res lease.Result) {
			p.Helper()
			if err := res.Record.Validate(); err != nil {
				p.Errorf("the answer shows %s: %v", outcomeText(res.Record, nil), err)
			}
		}
		look := func() { p.Helper(); valid(a.inspect()) }
		valid(a.inspect())
		for _, requests := range [][]lease.Request{
			{acquire(id, p.D), renew(id), release(id)},
			{acquire(id, p.D), {Action: lease.ActionChange, ID: id, Proposed: p.id()}, {Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}, {Action: lease.ActionBreak, Period: lease.Grace(0)}},
			{acquire(id, p.D), {Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}},
			{{Action: lease.ActionAcquire, Proposed: id, Owner: "worker-1", Duration: p.D}, release(id), {Action: lease.ActionWrite}},
			{acquire(id, p.D)},
		} {
			for _, req := range requests {
				if p.cannot(req) {
					continue
				}
				valid(a.grant(req))
				look()
			}
			_, err := a.ask(renew(p.id()))
			p.history.printf("refused: %v", err)
			p.pass(p.D + p.Slack/4)
			look()
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
			if p.cannot(req) {
				continue
			}
			if _, err := a.Do(ctx, p.name, req); !errors.Is(err, context.Canceled) {
				p.Errorf("%s: %v", requestText(req), err)
			}
		}
		if after := a.inspect(); !p.same(before.Record.At(after.Now), after.Record) {
			p.Errorf("the record was %s, and is %s", recordText(before.Record), recordText(after.Record))
		}
	}},
	{"M18/bad-arguments-are-refused-in-every-state", "a request without an argument of its action, or with one out of range, gets that argument's code and changes nothing", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		for _, state := range []string{"available", "leased"} {
			if state == "leased" {
				a.grant(acquire(id, p.D))
			}
			before := a.inspect()
			for _, bad := range []struct {
				code lease.Code
				req  lease.Request
			}{
				{lease.ErrAction, lease.Request{}},
				{lease.ErrAction, lease.Request{Action: lease.ActionWrite + 1}},
				{lease.ErrProposed, acquire(lease.ID{}, p.D)},
				{lease.ErrDuration, acquire(id, 0)},
				{lease.ErrDuration, acquire(id, -p.D)},
				{lease.ErrOwner, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: p.D, Owner: "a\x00b"}},
				{lease.ErrOwner, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: p.D, Owner: strings.Repeat("o", lease.MaxLabel+1)}},
				{lease.ErrID, renew(lease.ID{})},
				{lease.ErrID, release(lease.ID{})},
				{lease.ErrID, lease.Request{Action: lease.ActionChange, Proposed: id}},
				{lease.ErrProposed, lease.Request{Action: lease.ActionChange, ID: id}},
				{lease.ErrOwner, lease.Request{Action: lease.ActionChange, ID: id, Proposed: p.id(), Owner: "a\x00b"}},
				{lease.ErrPeriod, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(-1)}},
				{lease.ErrVersion, lease.Request{Action: lease.ActionRenew, ID: id, Version: 1}},
			} {
				if p.cannot(bad.req) {
					continue
				}
				_, err := a.ask(bad.req)
				field := (*lease.FieldError)(nil)
				if lease.CodeOf(err) != bad.code || lease.CodeOf(err).Refusal() || !errors.As(err, &field) {
					p.Errorf("%s: %s must be a FieldError with code %v: %v", state, requestText(bad.req), bad.code, err)
				}
			}
			if after := a.inspect(); !p.same(before.Record.At(after.Now), after.Record) {
				p.Errorf("%s: bad requests changed the record from %s to %s", state, recordText(before.Record), recordText(after.Record))
			}
		}
	}},
}
