package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An authorityState is a state of a lease and a function that puts a lease into it.
type authorityState struct {
	state lease.State
	what  string
	needs Ability
	set   func(a authorityTester, name string, id lease.ID)
	after func(p *tester) time.Duration // the time that must pass until the lease is in the state; nil for no time
}

// authorityStates contains all states. A leased or breaking lease is infinite or lasts for p.long().
var authorityStates = []authorityState{
	{lease.Available, "never used", 0, func(authorityTester, string, lease.ID) {}, nil},
	{lease.Available, "released", 0, func(a authorityTester, name string, id lease.ID) {
		a.mustGrant(name, acquire(id, a.D), release(id))
	}, nil},
	{lease.Available, "written", CanUse, func(a authorityTester, name string, id lease.ID) {
		a.mustGrant(name, acquire(id, a.D), release(id), lease.Request{Action: lease.ActionWrite})
	}, nil},
	{lease.Leased, "leased", 0, func(a authorityTester, name string, id lease.ID) { a.mustGrant(name, acquire(id, a.long())) }, nil},
	{lease.Leased, "infinite", CanBeInfinite, func(a authorityTester, name string, id lease.ID) { a.mustGrant(name, acquire(id, lease.Infinite)) }, nil},
	{lease.Breaking, "breaking", CanBreak, func(a authorityTester, name string, id lease.ID) {
		a.mustGrant(name, acquire(id, a.long()), lease.Request{Action: lease.ActionBreak})
	}, nil},
	{lease.Broken, "broken", CanBreak, func(a authorityTester, name string, id lease.ID) {
		a.mustGrant(name, acquire(id, a.D), lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
	}, nil},
	{lease.Expired, "expired", 0, func(a authorityTester, name string, id lease.ID) {
		a.mustGrant(name, acquire(id, a.short()))
	}, (*tester).short},
}

// short returns the duration of a lease that expires soon.
func (p *tester) short() time.Duration { return max(p.Unit, p.Limits.MinDuration) }

// The method long returns Limits.MaxDuration. If there is no such limit, it returns a duration that is longer
// than any rule takes.
func (p *tester) long() time.Duration {
	if p.Limits.MaxDuration > 0 {
		return p.Limits.MaxDuration
	}
	return 100 * p.D
}

func (a authorityTester) mustGrant(name string, requests ...lease.Request) {
	a.Helper()
	for _, req := range requests {
		if _, err := a.Do(a.ctx, name, req); err != nil {
			a.Fatalf("%s must be granted: %v", requestText(req), err)
		}
	}
}

// eachState calls f with a new lease for each state that a lease of the authority can have.
func (a authorityTester) eachState(f func(name string, id lease.ID, s authorityState)) {
	a.Helper()
	for _, s := range authorityStates {
		if !a.can(s.needs) {
			continue
		}
		name, id := a.name+"/"+strings.ReplaceAll(s.what, " ", "-"), a.id()
		s.set(a, name, id)
		if s.after != nil {
			a.pass(s.after(a.tester) + a.Slack/4)
		}
		f(name, id, s)
	}
}

// requireRecord reads the named lease, and requires that the answer shows the record r. The state in the
// answer must be the state at the time of the read, for example Expired if the lease of r has ended.
func (a authorityTester) requireRecord(name string, r lease.Record, when string) lease.Result {
	a.Helper()
	res := a.read(name)
	want, got := r.At(res.Now), res.Record
	isEqual := got.State == want.State
	if a.can(CanShowRecords) {
		isEqual = isEqual && got.Epoch >= want.Epoch && a.sameRecords(want, got)
	}
	if !isEqual {
		a.Errorf("%s a read shows %s, and not %s", when, recordText(got), recordText(want))
	}
	return res
}

// everyRequest returns requests with all actions, both with the ID of the holder and with other IDs.
func (a authorityTester) everyRequest(id lease.ID) (all []lease.Request) {
	other := a.id()
	period := lease.Grace(a.D / 4)
	for _, req := range []lease.Request{
		{Action: lease.ActionAcquire, Proposed: id, Owner: "another", Duration: a.D}, {Action: lease.ActionAcquire, Proposed: other, Duration: a.D},
		renew(id), renew(other), release(id), release(other),
		{Action: lease.ActionRead}, {Action: lease.ActionRead, ID: id}, {Action: lease.ActionRead, ID: other},
		{Action: lease.ActionWrite}, {Action: lease.ActionWrite, ID: id}, {Action: lease.ActionWrite, ID: other},
		{Action: lease.ActionChange, ID: id, Proposed: other}, {Action: lease.ActionChange, ID: other, Proposed: id, Owner: "another"},
		{Action: lease.ActionChange, ID: other, Proposed: a.id()},
		{Action: lease.ActionBreak}, {Action: lease.ActionBreak, Period: lease.Grace(0)}, {Action: lease.ActionBreak, Period: period},
	} {
		if !a.lacksAbility(req) && (req.Action != lease.ActionRead || req.ID.IsZero() || a.can(CanUse)) {
			all = append(all, req)
		}
	}
	return all
}

// A stateCase is a request for a lease in a certain state.
type stateCase struct {
	what   string // the state and the request
	name   string
	req    lease.Request
	before lease.Result
}

// eachCell calls f for every pair of a state and a request, with a separate lease for each pair.
func (a authorityTester) eachCell(f func(c stateCase)) {
	a.Helper()
	for _, s := range authorityStates {
		if !a.can(s.needs) {
			continue
		}
		var cells []stateCase
		id := a.id()
		for i, req := range a.everyRequest(id) {
			name := fmt.Sprintf("%s/%s/%d", a.name, strings.ReplaceAll(s.what, " ", "-"), i)
			s.set(a, name, id)
			cells = append(cells, stateCase{what: s.what + ": " + requestText(req), name: name, req: req})
		}
		if s.after != nil {
			a.pass(s.after(a.tester) + a.Slack/4)
		}
		for _, c := range cells {
			c.before = a.read(c.name)
			f(c)
		}
	}
}

// nearlySame is like sameRecords, but the ends of the two leases may differ by up to Options.Slack.
func (p *tester) nearlySame(old, got lease.Record) bool {
	if d := old.Until.Sub(got.Until); p.Slack > 0 && d <= p.Slack && -d <= p.Slack {
		old.Until = got.Until
	}
	return p.sameRecords(old, got)
}

var stateRules = []rule{
	{"M1/every-request-in-every-state", "every request in every state has the outcome of the tables, and changes the record as they say and nothing else", CanShowRecords, func(p *tester) {
		a := p.authority()
		a.eachCell(func(c stateCase) {
			res, err := a.Do(p.ctx, c.name, c.req)
			if err != nil && !lease.CodeOf(err).Refusal() {
				p.Errorf("%s: the outcome is unknown: %v", c.what, err)
				return
			}
			at := res.Now
			if at.IsZero() { // the authority returns no record with a refusal
				at = c.before.Now
			}
			want, wrong := lease.Step(c.before.Record, c.req, at)
			if lease.CodeOf(err) != lease.CodeOf(wrong) {
				p.Errorf("%s: the outcome is %s, and must be %s", c.what, codeText(lease.CodeOf(err), err), codeText(lease.CodeOf(wrong), nil))
			}
			if !p.can(CanShowRecords) {
				return
			}
			if epochMayRise(c.before.Record) {
				want.Epoch = max(want.Epoch, res.Record.Epoch)
			}
			after := a.read(c.name)
			for when, shown := range map[string]lease.Result{"the answer shows": res, "a read after it shows": after} {
				if want := want.At(shown.Now); !shown.Now.IsZero() && !p.nearlySame(want, shown.Record) {
					p.Errorf("%s: %s %s, and must show %s", c.what, when, recordText(shown.Record), recordText(want))
				}
			}
		})
	}},
	{"A5/every-answer-in-every-state", "MinRemaining of every answer in every state is at most what is left of the lock", CanShowRecords, func(p *tester) {
		a := p.authority()
		a.eachCell(func(c stateCase) {
			res, err := a.Do(p.ctx, c.name, c.req)
			want, _ := lease.Step(c.before.Record, c.req, res.Now)
			if most := want.Remaining(res.Now); !res.Now.IsZero() && (res.MinRemaining < 0 || most != lease.Infinite && res.MinRemaining > most+p.Slack) {
				p.Errorf("%s: %v are certain, of at most %v that are left: %v", c.what, res.MinRemaining, most, err)
			}
		})
	}},
	{"A2/time-never-decreases-in-any-state", "the authority's time does not decrease from one answer to the next, whatever the state and the request", CanTellTime, func(p *tester) {
		a := p.authority()
		a.eachCell(func(c stateCase) {
			last := c.before.Now
			res, err := a.Do(p.ctx, c.name, c.req)
			after := a.read(c.name)
			for _, now := range []time.Time{res.Now, after.Now} {
				if !now.IsZero() && now.Before(last) {
					p.Errorf("%s: the time was %s, and then %s: %v", c.what, timeText(last), timeText(now), err)
				} else if !now.IsZero() {
					last = now
				}
			}
		})
	}},
	{"A6/a-done-context-changes-no-state", "a request whose context is done already changes nothing, in any state, and gets the context's error", 0, func(p *tester) {
		a := p.authority()
		ctx := p.doneContext()
		a.eachCell(func(c stateCase) {
			p.pass(time.Millisecond) // a renewal at the same instant would have no effect
			if _, err := a.Do(ctx, c.name, c.req); !errors.Is(err, context.Canceled) {
				p.Errorf("%s: %v", c.what, err)
			}
			p.pass(time.Millisecond) // wait for requests that the call may have left running
			a.requireRecord(c.name, c.before.Record, c.what+", under a done context:")
		})
	}},
	{"M4/tokens-outlive-idleness-in-every-state", "the first grant after a long time has a newer token than the last one before it, whatever state the lease was left in", 0, func(p *tester) {
		a := p.authority()
		last := map[string]uint64{}
		a.eachState(func(name string, _ lease.ID, _ authorityState) {
			res := a.read(name)
			last[name] = res.Record.Epoch
		})
		p.pass(p.idleTime())
		for name, epoch := range last {
			if strings.HasSuffix(name, "/infinite") {
				_, err := a.Do(p.ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
				if err != nil {
					continue // without breaks, an infinite lease stays leased
				}
			}
			res, err := a.Do(p.ctx, name, acquire(p.id(), p.D))
			if lease.CodeOf(err) == lease.ErrHeldByOther && !p.Bubble {
				continue // the lease has not expired yet
			}
			p.need(err, "acquire of what was idle")
			if res.Record.Epoch <= epoch {
				p.Errorf("%q was left with epoch %d, and after %v epoch %d is granted", name, epoch, p.idleTime(), res.Record.Epoch)
			}
		}
	}},
	{"S3/reopening-keeps-every-state", "a lease in any state is the same after the authority was opened again", hasReopenAuthority, func(p *tester) {
		a := p.authority()
		before := map[string]lease.Record{}
		ids := map[string]lease.ID{}
		a.eachState(func(name string, id lease.ID, s authorityState) {
			if s.state == lease.Expired && !p.can(CanTellTime) {
				return // an authority without a clock counts the duration only from its first read of the record
			}
			res := a.read(name)
			before[name], ids[name] = res.Record, id
		})
		for range 2 {
			a.reopen()
			for name, r := range before {
				if r.ID.IsZero() { // the store may have deleted the record, and then reports the highest epoch of all names
					res := a.read(name)
					r.Epoch = max(r.Epoch, res.Record.Epoch)
				}
				res := a.requireRecord(name, r, "after the authority was opened again")
				if _, err := a.Do(p.ctx, name, renew(ids[name])); (err == nil) != (res.Record.State == lease.Leased || res.Record.State == lease.Expired) {
					p.Errorf("%q is %v after the authority was opened again, and a renewal gets %v", name, res.Record.State, err)
				} else if err == nil {
					before[name] = a.read(name).Record
				}
			}
		}
	}},
	{"A4/a-grant-that-writes-nothing-is-decided-on-what-another-client-left", "a client refuses a use of a lease, and a change to the ID in force, once another client has broken the lease or has taken it", CanBreak | CanUse | hasAnotherAuthority, func(p *tester) {
		a := p.authority()
		clients := []authorityTester{a, a.another()}
		for i := range 4 {
			one, other := clients[i%2], clients[1-i%2]
			id, last := p.id(), p.id()
			one.grant(acquire(id, p.D))
			other.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
			if i >= 2 {
				other.grant(acquire(last, p.D))
			} else {
				last = id
			}
			for _, req := range []lease.Request{{Action: lease.ActionWrite, ID: id}, {Action: lease.ActionRead, ID: id}, {Action: lease.ActionChange, ID: id, Proposed: id}} {
				if p.lacksAbility(req) {
					continue
				}
				if _, err := one.ask(req); !lease.CodeOf(err).Refusal() {
					p.Errorf("%s, after another client has ended the lease: %v", requestText(req), err)
				}
			}
			other.grant(release(last))
		}
	}},
	{"A2/another-client-respects-a-lock-to-its-end", "an acquire by another client is refused for as long as the answer to the first client was certain", hasAnotherAuthority, func(p *tester) {
		a := p.authority()
		clients := []authorityTester{a, a.another()}
		for i := range 8 {
			one, other := clients[i%2], clients[1-i%2]
			id := p.id()
			sent := time.Now()
			res := one.grant(acquire(id, p.D))
			if i%4 >= 2 {
				p.pass(p.D / 4)
				other.inspect()
			}
			if i >= 4 {
				sent = time.Now()
				res = other.grant(renew(id))
				one, other = other, one
			}
			left := res.MinRemaining - time.Since(sent) - max(time.Nanosecond, p.Slack)
			if !p.Bubble {
				left /= 2 // a real server may answer the next request late
			}
			p.pass(left)
			other.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
			_, _ = one.ask(release(id))
		}
	}},
	{"A5/another-client-is-told-what-is-left-of-a-renewed-lease", "MinRemaining is never more than what is left of a lease that was renewed or acquired again since another client saw it, or that a client has not seen before", hasAnotherAuthority, func(p *tester) {
		a := p.authority()
		other := a.another()
		latest := map[string]time.Time{} // the latest possible end of each lease
		id := p.id()
		for _, again := range []lease.Request{renew(id), acquire(id, p.D)} {
			name := fmt.Sprint(p.name, "/", again.Action)
			a.mustGrant(name, acquire(id, p.D))
			_ = other.read(name)
			a.mustGrant(name, again)
			latest[name] = time.Now().Add(p.D)
		}
		p.pass(p.D / 2)
		for name, end := range latest {
			for what, client := range map[string]authorityTester{"another client": other, "a new client": a.another()} {
				sent := time.Now()
				res := client.read(name)
				if most := end.Sub(sent) + p.Slack; res.MinRemaining > most {
					p.Errorf("MinRemaining of %q is %v to %s, and at most %v are left", name, res.MinRemaining, what, most)
				}
			}
		}
	}},
	{"A5/a-later-break-has-its-own-end", "another client that saw an earlier break of the lease is told the end of the later break, and respects it", hasAnotherAuthority | CanBreak, func(p *tester) {
		a := p.authority()
		for n, id := range []lease.ID{p.id(), p.id()} {
			name, next := fmt.Sprint(p.name, "/", n), id
			if n > 0 {
				next = p.id()
			}
			other := a.another()
			breakFor := func(d time.Duration) lease.Request {
				return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(d)}
			}
			a.mustGrant(name, acquire(id, p.D))
			a.mustGrant(name, breakFor(p.D/4))
			_ = other.read(name)
			if n == 0 {
				p.pass(p.D/4 + p.Slack)
			} else {
				a.mustGrant(name, release(id))
			}
			a.mustGrant(name, acquire(next, p.D))
			end := time.Now().Add(p.D * 3 / 4) // the earliest possible end of the break
			a.mustGrant(name, breakFor(p.D*3/4))
			for range 2 {
				res := other.read(name)
				if least := time.Until(end) - p.Slack; !res.Now.IsZero() && res.MaxRemaining() < least {
					p.Errorf("MaxRemaining of the later break is %v to another client, and at least %v are left", res.MaxRemaining(), least)
				}
				p.pass(p.D/4 + p.Slack)
				if _, err := other.Do(p.ctx, name, acquire(p.id(), p.D)); err == nil {
					if left := time.Until(end) - p.Slack; left > 0 {
						p.Errorf("an acquire of another client was granted %v before the end of the later break", left)
					}
				}
			}
		}
	}},
}

func (a *authorityTester) reopen() {
	a.history.printf("the authority is reopened")
	a.bare = a.Options.Authority.Reopen(a.tester.TB, a.bare)
	a.checkMade(a.bare, "Options.Authority.Reopen")
	a.Authority = a.history.authority(a.bare)
}

// clients returns the authority. If the suite can make a second client that uses the same data, clients
// returns this second client, too.
func (a authorityTester) clients() []authorityTester {
	a.Helper()
	if !a.can(hasAnotherAuthority) {
		return []authorityTester{a}
	}
	return []authorityTester{a, a.another()}
}

func (a authorityTester) another() authorityTester {
	a.Helper()
	other := a.Options.Authority.Another(a.tester.TB, a.bare)
	a.checkMade(other, "Options.Authority.Another")
	return authorityTester{a.tester, a.history.authority(other), other}
}
