package leasetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An authorityState is a state of a lease, and how requests bring it about.
type authorityState struct {
	state lease.State
	what  string
	needs Ability
	set   func(a authorityProbe, name string, id lease.ID)
}

// authorityStates are all of them. A finite lock lasts for ten durations, or as long as the limits
// allow.
var authorityStates = []authorityState{
	{lease.Available, "never used", 0, func(authorityProbe, string, lease.ID) {}},
	{lease.Available, "released", 0, func(a authorityProbe, name string, id lease.ID) {
		a.must(name, acquire(id, a.D), release(id))
	}},
	{lease.Available, "written", CanUse, func(a authorityProbe, name string, id lease.ID) {
		a.must(name, acquire(id, a.D), release(id), lease.Request{Action: lease.ActionWrite})
	}},
	{lease.Leased, "leased", 0, func(a authorityProbe, name string, id lease.ID) { a.must(name, acquire(id, a.long())) }},
	{lease.Leased, "infinite", CanBeInfinite, func(a authorityProbe, name string, id lease.ID) { a.must(name, acquire(id, lease.Infinite)) }},
	{lease.Breaking, "breaking", CanBreak, func(a authorityProbe, name string, id lease.ID) {
		a.must(name, acquire(id, a.long()), lease.Request{Action: lease.ActionBreak})
	}},
	{lease.Broken, "broken", CanBreak, func(a authorityProbe, name string, id lease.ID) {
		a.must(name, acquire(id, a.D), lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
	}},
	{lease.Expired, "expired", 0, func(a authorityProbe, name string, id lease.ID) {
		d := max(a.Unit, a.Limits.MinDuration)
		a.must(name, acquire(id, d))
		a.pass(d + a.Slack/4)
	}},
}

// long is a duration that outlasts a rule.
func (p *probe) long() time.Duration {
	if p.Limits.MaxDuration > 0 {
		return p.Limits.MaxDuration
	}
	return 100 * p.D
}

// must makes requests that must be granted.
func (a authorityProbe) must(name string, requests ...lease.Request) {
	a.Helper()
	for _, req := range requests {
		if _, err := a.Do(a.ctx, name, req); err != nil {
			a.Fatalf("%s must be granted: %v", requestText(req), err)
		}
	}
}

// eachState calls f for each state that the authority can come to, with a name and an ID of its own.
func (a authorityProbe) eachState(f func(name string, id lease.ID, s authorityState)) {
	a.Helper()
	for _, s := range authorityStates {
		if !a.can(s.needs) {
			continue
		}
		name, id := a.name+"/"+strings.ReplaceAll(s.what, " ", "-"), a.id()
		s.set(a, name, id)
		f(name, id, s)
	}
}

// shows requires that a read through any client shows the record that r was.
func (a authorityProbe) shows(name string, r lease.Record, when string) lease.Result {
	a.Helper()
	res, err := lease.Inspect(a.ctx, a, name)
	a.need(err, "read")
	if want := r.At(res.Now); res.Record.State != want.State || res.Record.Epoch < want.Epoch && a.can(CanShowRecords) || a.can(CanShowRecords) && !a.same(res.Record, want) {
		a.Errorf("%s a read shows %s, and not %s", when, recordText(res.Record), recordText(want))
	}
	return res
}

// requests are one of each action, with the ID of the holder.
func (a authorityProbe) requests(id lease.ID) (all []lease.Request) {
	for _, req := range []lease.Request{
		acquire(id, a.D), acquire(a.id(), a.D), renew(id), release(id), {Action: lease.ActionRead}, {Action: lease.ActionRead, ID: id},
		{Action: lease.ActionWrite}, {Action: lease.ActionWrite, ID: id}, {Action: lease.ActionChange, ID: id, Proposed: a.id()},
		{Action: lease.ActionBreak}, {Action: lease.ActionBreak, Period: lease.Grace(0)},
	} {
		if !a.cannot(req) {
			all = append(all, req)
		}
	}
	return all
}

// stateRules try every state.
var stateRules = []rule{
	{"A6/a-done-context-changes-no-state", "a request whose context is done already changes nothing, in any state, and gets the context's error", 0, func(p *probe) {
		a := p.authority()
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		a.eachState(func(name string, id lease.ID, s authorityState) {
			before, err := lease.Inspect(p.ctx, a, name)
			p.need(err, "read")
			for _, req := range a.requests(id) {
				if _, err := a.Do(ctx, name, req); !errors.Is(err, context.Canceled) {
					p.Errorf("%s: %s: %v", s.what, requestText(req), err)
				}
			}
			a.shows(name, before.Record, s.what+": after requests under a done context")
		})
	}},
	{"M2/refusals-and-reads-change-no-state", "a refused request and a read change nothing, in any state", CanShowRecords, func(p *probe) {
		a := p.authority()
		a.eachState(func(name string, id lease.ID, s authorityState) {
			for _, req := range a.requests(p.id()) {
				before, err := lease.Inspect(p.ctx, a, name)
				p.need(err, "read")
				if req.Owner = "somebody else"; req.Action == lease.ActionRead && req.ID.IsZero() {
					req.Owner = ""
				}
				if (req.Action == lease.ActionAcquire || req.Action == lease.ActionBreak || req.Action == lease.ActionWrite) && req.ID.IsZero() && !s.state.Locked() || req.Action == lease.ActionBreak {
					continue // it may be granted
				}
				if _, err := a.Do(p.ctx, name, req); err != nil && !lease.CodeOf(err).Refusal() {
					p.Errorf("%s: %s: %v", s.what, requestText(req), err)
				}
				a.shows(name, before.Record, s.what+": after "+requestText(req))
			}
		})
	}},
	{"M4/tokens-outlive-idleness-in-every-state", "the first grant after a long time has a newer token than the last one before it, whatever state the lease was left in", 0, func(p *probe) {
		a := p.authority()
		last := map[string]uint64{}
		a.eachState(func(name string, _ lease.ID, _ authorityState) {
			res, err := lease.Inspect(p.ctx, a, name)
			p.need(err, "read")
			last[name] = res.Record.Epoch
		})
		p.pass(p.idle())
		for name, epoch := range last {
			if strings.HasSuffix(name, "/infinite") {
				_, err := a.Do(p.ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
				if err != nil {
					continue // without breaks it stays leased
				}
			}
			res, err := a.Do(p.ctx, name, acquire(p.id(), p.D))
			if lease.CodeOf(err) == lease.ErrHeldByOther && !p.Bubble {
				continue // less than its duration has passed
			}
			p.need(err, "acquire of what was idle")
			if res.Record.Epoch <= epoch {
				p.Errorf("%q was left with epoch %d, and after %v epoch %d is granted", name, epoch, p.idle(), res.Record.Epoch)
			}
		}
	}},
	{"M4/tokens-rise-from-every-state", "a grant has the token that follows that of the grant before it, whatever state the lease was in meanwhile", 0, func(p *probe) {
		a := p.authority()
		a.eachState(func(name string, id lease.ID, s authorityState) {
			before, err := lease.Inspect(p.ctx, a, name)
			p.need(err, "read")
			res, err := a.Do(p.ctx, name, acquire(id, p.D))
			if s.state == lease.Breaking {
				return // only a release ends it early
			}
			p.need(err, "acquire by the last holder")
			if res.Record.Epoch <= before.Record.Epoch || s.what != "never used" && res.Record.Epoch != before.Record.Epoch+1 {
				p.Errorf("%s: epoch %d is granted after %d", s.what, res.Record.Epoch, before.Record.Epoch)
			}
		})
	}},
	{"S3/reopening-keeps-every-state", "a lease in any state is the same after the authority was opened again", hasReopenAuthority, func(p *probe) {
		a := p.authority()
		before := map[string]lease.Record{}
		ids := map[string]lease.ID{}
		a.eachState(func(name string, id lease.ID, _ authorityState) {
			res, err := lease.Inspect(p.ctx, a, name)
			p.need(err, "read")
			before[name], ids[name] = res.Record, id
		})
		for range 2 {
			a.reopen()
			for name, r := range before {
				res := a.shows(name, r, "after the authority was opened again")
				if _, err := a.Do(p.ctx, name, renew(ids[name])); (err == nil) != res.Record.State.Renewable() {
					p.Errorf("%q is %v after the authority was opened again, and a renewal gets %v", name, res.Record.State, err)
				} else if err == nil {
					res, _ = lease.Inspect(p.ctx, a, name)
					before[name] = res.Record
				}
			}
		}
	}},
	{"M4/reopening-lowers-no-token", "the first grant after the authority was opened again has a newer token than every one before", hasReopenAuthority, func(p *probe) {
		a := p.authority()
		for range 3 {
			a.eachState(func(name string, id lease.ID, s authorityState) {
				res, err := lease.Inspect(p.ctx, a, name)
				p.need(err, "read")
				a.reopen()
				again, err := a.Do(p.ctx, name, acquire(id, p.D))
				if s.state == lease.Breaking {
					return
				}
				p.need(err, "acquire by the last holder")
				if again.Record.Epoch <= res.Record.Epoch {
					p.Errorf("%s: epoch %d was the last one, and %d is granted after the authority was opened again", s.what, res.Record.Epoch, again.Record.Epoch)
				}
			})
			a.name += "/next"
		}
	}},
	{"A4/another-client-sees-every-state", "what one client was answered, another that asks later sees, in every state", hasAnotherAuthority, func(p *probe) {
		a := p.authority()
		other := a.another()
		a.eachState(func(name string, id lease.ID, s authorityState) {
			_, err := lease.Inspect(p.ctx, other, name)
			p.need(err, "read by another client")
			res, err := lease.Inspect(p.ctx, a, name)
			p.need(err, "read")
			other.shows(name, res.Record, s.what+": to another client")
			for i, req := range a.requests(id) {
				asks, sees := a, other
				if i%2 == 1 {
					asks, sees = other, a
				}
				res, err := asks.Do(p.ctx, name, req)
				if err == nil {
					sees.shows(name, res.Record, s.what+": after another client's "+requestText(req))
				} else if !lease.CodeOf(err).Refusal() {
					p.Errorf("%s: %s: %v", s.what, requestText(req), err)
				}
			}
		})
	}},
	{"A2/clients-exclude-each-other", "of acquires by two clients at the same time one is granted, and tokens rise from client to client", hasAnotherAuthority, func(p *probe) {
		a := p.authority()
		clients := []authorityProbe{a, a.another()}
		last := uint64(0)
		for range 10 {
			ids := []lease.ID{p.id(), p.id()}
			var granted [2]uint64
			p.together(2, func(i int) {
				res, err := clients[i].ask(acquire(ids[i], p.D))
				switch {
				case err == nil:
					granted[i] = res.Record.Epoch
				case lease.CodeOf(err) != lease.ErrHeldByOther:
					p.Errorf("the acquire of a loser: %v", err)
				}
			})
			if (granted[0] == 0) == (granted[1] == 0) {
				p.Fatalf("two clients acquired at the same time, and were granted the epochs %v", granted)
			}
			if won := max(granted[0], granted[1]); won <= last {
				p.Errorf("epoch %d is granted after %d", won, last)
			} else {
				last = won
			}
			for i, id := range ids {
				if granted[i] > 0 {
					clients[1-i].must(p.name, release(id)) // the ID decides, not the client
				}
			}
		}
	}},
}

// reopen closes the authority and opens it again.
func (a *authorityProbe) reopen() {
	a.history.printf("the authority is reopened")
	a.bare = a.Options.ReopenAuthority(a.probe.TB, a.bare)
	a.made(a.bare, "Options.ReopenAuthority")
	a.Authority = a.history.authority(a.bare)
}

// another returns the authority as a second client has it.
func (a authorityProbe) another() authorityProbe {
	a.Helper()
	other := a.Options.AnotherAuthority(a.probe.TB, a.bare)
	a.made(other, "Options.AnotherAuthority")
	return authorityProbe{a.probe, a.history.authority(other), other}
}
