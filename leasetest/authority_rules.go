package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

var authorityRules = []rule{
	{"A1/granted-shows-the-record", "a grant shows the record after the action, and the authority's time", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		res := a.grant(lease.Request{Action: lease.Acquire, Proposed: id, Owner: "worker-1", Duration: p.D})
		r := res.Record
		if r.State != lease.Leased || r.ID != id || r.Epoch == 0 || res.Now.IsZero() || r.Valid() != nil {
			p.Errorf("the grant shows %s at %s: %v", outcomeText(r, nil), timeText(res.Now), r.Valid())
		}
		if p.Lacks&Disclosing == 0 && (r.Owner != "worker-1" || r.Duration != p.D) {
			p.Errorf("the grant shows owner %q and duration %v", r.Owner, r.Duration)
		}
		if seen := a.inspect(); p.Lacks&Disclosing == 0 && !p.same(seen.Record, r) {
			p.Errorf("the grant shows %s, and a read %s", outcomeText(r, nil), outcomeText(seen.Record, nil))
		}
	}},
	{"A1/refused-is-a-code", "a refusal is an OpError around a refusing Code, and shows the record that decided", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		res, err := a.ask(acquire(p.id(), p.D))
		op := (*lease.OpError)(nil)
		if !errors.Is(err, lease.ErrHeld) || !lease.CodeOf(err).Refusal() || !errors.As(err, &op) || op.Op != "acquire" || op.Name != p.name {
			p.Errorf("the refusal is %v", err)
		}
		if p.Lacks&Disclosing == 0 && (res.Record.ID != id || res.Record.State != lease.Leased || res.Now.IsZero()) {
			p.Errorf("the refusal shows %s at %s", outcomeText(res.Record, nil), timeText(res.Now))
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
				{lease.ErrAction, lease.Request{Action: lease.Write + 1}},
				{lease.ErrProposed, acquire(lease.ID{}, p.D)},
				{lease.ErrDuration, acquire(id, 0)},
				{lease.ErrDuration, acquire(id, -p.D)},
				{lease.ErrOwner, lease.Request{Action: lease.Acquire, Proposed: id, Duration: p.D, Owner: "a\x00b"}},
				{lease.ErrOwner, lease.Request{Action: lease.Acquire, Proposed: id, Duration: p.D, Owner: strings.Repeat("o", lease.MaxLabel+1)}},
				{lease.ErrID, renew(lease.ID{})},
				{lease.ErrID, release(lease.ID{})},
				{lease.ErrID, lease.Request{Action: lease.Change, Proposed: id}},
				{lease.ErrProposed, lease.Request{Action: lease.Change, ID: id}},
				{lease.ErrPeriod, lease.Request{Action: lease.Break, Period: lease.In(-1)}},
				{lease.ErrVersion, lease.Request{Action: lease.Renew, ID: id, Version: 1}},
			} {
				if bad.req.Action == lease.Break && p.Lacks&Breaking != 0 || bad.req.Action == lease.Change && p.Lacks&Changing != 0 {
					continue
				}
				_, err := a.ask(bad.req)
				field := (*lease.FieldError)(nil)
				if lease.CodeOf(err) != bad.code || lease.CodeOf(err).Refusal() || !errors.As(err, &field) {
					p.Errorf("%s: %s must be a FieldError with code %v: %v", state, requestText(bad.req), bad.code, err)
				}
			}
			if after := a.inspect(); !p.same(before.Record.At(after.Now), after.Record) {
				p.Errorf("%s: bad requests changed the record from %s to %s", state, outcomeText(before.Record, nil), outcomeText(after.Record, nil))
			}
		}
	}},
	{"A2/one-acquire-wins", "of any number of acquires with different IDs, at the same time, one is granted, and the others are refused as held", 0, func(p *probe) {
		a := p.authority()
		for range 10 {
			var wins atomic.Int32
			var winner atomic.Pointer[lease.ID]
			ids := make([]lease.ID, 8)
			for i := range ids {
				ids[i] = p.id()
			}
			p.together(len(ids), func(i int) {
				switch _, err := a.ask(acquire(ids[i], p.D)); {
				case err == nil:
					wins.Add(1)
					winner.Store(&ids[i])
				case lease.CodeOf(err) != lease.ErrHeld:
					p.Errorf("the acquire of a loser: %v", err)
				}
			})
			if n := wins.Load(); n != 1 {
				p.Fatalf("%d of %d acquires were granted", n, len(ids))
			}
			a.grant(release(*winner.Load()))
		}
	}},
	{"A2/holders-exclude-each-other", "between the grant of an acquire and its release no other is granted, and tokens rise from grant to grant", 0, func(p *probe) {
		a := p.authority()
		var holders atomic.Int32
		var newest atomic.Uint64
		ids := make([][]lease.ID, 4)
		for i := range ids {
			for range 25 {
				ids[i] = append(ids[i], p.id())
			}
		}
		p.together(len(ids), func(i int) {
			for _, id := range ids[i] {
				res, err := a.ask(acquire(id, 10*p.D))
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					p.Errorf("%d hold it", n)
				}
				if last := newest.Swap(res.Record.Epoch); last >= res.Record.Epoch {
					p.Errorf("epoch %d was granted after %d", res.Record.Epoch, last)
				}
				if _, err := a.ask(renew(id)); err != nil {
					p.Errorf("the holder's renewal: %v", err)
				}
				holders.Add(-1)
				if _, err := a.ask(release(id)); err != nil {
					p.Errorf("the holder's release: %v", err)
				}
			}
		})
	}},
	{"A2/break-races-renewal", "a renewal and a break at the same time are one before the other", Breaking, func(p *probe) {
		a := p.authority()
		for range 10 {
			id := p.id()
			a.grant(acquire(id, p.D))
			p.together(2, func(i int) {
				if i == 0 {
					if _, err := a.ask(lease.Request{Action: lease.Break, Period: lease.In(0)}); err != nil {
						p.Errorf("the break: %v", err)
					}
				} else if _, err := a.ask(renew(id)); err != nil && lease.CodeOf(err) != lease.ErrBroken {
					p.Errorf("the renewal: %v", err)
				}
			})
			if state := a.inspect().Record.State; state != lease.Broken {
				p.Errorf("after a renewal and a break of period 0 the lease is %v", state)
			}
		}
	}},
	{"A4/answers-are-fresh", "a refusal, and a read, are decided on the record as it is, not as it was", 0, func(p *probe) {
		a := p.authority()
		for range 10 {
			one, two := p.id(), p.id()
			a.grant(acquire(one, p.D))
			a.refuse(acquire(two, p.D), lease.ErrHeld)
			a.grant(release(one))
			if state := a.inspect().Record.State; state != lease.Available {
				p.Errorf("a read after the release shows %v", state)
			}
			a.grant(acquire(two, p.D))
			a.refuse(renew(one), lease.ErrIDMismatch)
			a.grant(release(two))
		}
	}},
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
	{"A6/done-context-makes-no-request", "a request whose context is done already is not carried out and gets the context's error", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		before := a.inspect()
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id), release(id)} {
			if _, err := a.Do(ctx, p.name, req); !errors.Is(err, context.Canceled) {
				p.Errorf("%s: %v", requestText(req), err)
			}
		}
		if after := a.inspect(); !p.same(before.Record.At(after.Now), after.Record) {
			p.Errorf("the record was %s, and is %s", outcomeText(before.Record, nil), outcomeText(after.Record, nil))
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
	{"M4/the-same-ID-has-a-newer-token", "tokens compare as numbers, over releases, and past the tenth", 0, func(p *probe) {
		a := p.authority()
		var last lease.Token
		for i := range 12 {
			id := p.id()
			res := a.grant(acquire(id, p.D))
			tok := res.Record.Token()
			if tok.Valid() != nil || tok.Compare(last) <= 0 || string(tok) <= string(last) {
				p.Errorf("grant %d has the token %q, after %q", i+1, tok, last)
			}
			if kept := a.grant(renew(id)).Record.Token(); kept != tok {
				p.Errorf("the renewal has the token %q, and the grant %q", kept, tok)
			}
			last = tok
			a.grant(release(id))
		}
	}},
	{"R6/names-and-owners", "names and owners are non-empty valid UTF-8 of at most 1024 bytes without NUL", 0, func(p *probe) {
		a := p.authority()
		for _, h := range hostile {
			for _, req := range []lease.Request{acquire(p.id(), p.D), renew(p.id()), {Action: lease.Read}} {
				if _, err := a.Do(p.ctx, h.name, req); lease.CodeOf(err) != lease.ErrName {
					p.Errorf("%s: %s under the name %.40q: %v", h.what, requestText(req), h.name, err)
				}
			}
		}
	}},
	{"S6/different-names-are-different-leases", "two names never share a lease; a name that cannot be kept is refused", 0, func(p *probe) {
		a := p.authority()
		for i, pair := range alike {
			// Under names of its own, but for those that must not be longer.
			first, second := fmt.Sprintf("%x.%d.%s", p.rand.Uint32(), i, pair.a), ""
			if n := len(first) - len(pair.a); len(first) <= lease.MaxLabel && len(pair.b)+n <= lease.MaxLabel {
				second = first[:n] + pair.b
			} else {
				first, second = pair.a, pair.b
			}
			one, two := p.id(), p.id()
			if _, err := a.Do(p.ctx, first, acquire(one, p.D)); err != nil {
				continue
			}
			if _, err := a.Do(p.ctx, second, acquire(two, p.D)); lease.CodeOf(err) == lease.ErrHeld {
				p.Errorf("%s: %.80q is held because %.80q is", pair.what, second, first)
			}
			_, _ = a.Do(p.ctx, first, release(one))
			_, _ = a.Do(p.ctx, second, release(two))
		}
	}},
	{"S7/change-signals", "every change of the record is signalled to a watch of the authority", Watching, func(p *probe) {
		a := p.authority()
		signals := p.watch(p.ctx, a.bare, p.name)
		id := p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id), release(id)} {
			if p.Bubble {
				p.pass(p.Unit) // a renewal at the same instant changes nothing
			}
			a.grant(req)
			if !p.signalled(signals) {
				p.Fatalf("%s was not signalled", requestText(req))
			}
		}
	}},
}
