package leasetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// oldPeriodRule applies both to authorities and to functions like lease.Step.
var oldPeriodRule = rule{"M17/before-2012-02-12-no-period-is-looked-at", "a break of a version before 2012-02-12 ignores every period, even one out of range, and ends when what is left ends", CanServeOldVersions | CanBreak | CanShowRecords, func(p *tester) {
	a := p.authority()
	for _, period := range []lease.Period{lease.Grace(-1), lease.Grace(-lease.Infinite), lease.Grace(0), lease.Grace(p.D / 4), lease.Grace(lease.Infinite)} {
		id := p.id()
		want := a.grant(acquire(id, p.D)).Record
		want.State = lease.Breaking
		breaks := lease.Request{Action: lease.ActionBreak, Period: period, Version: lease.Version20110818}
		if got := a.grant(breaks).Record; !p.sameRecords(want, got) {
			p.Errorf("%s leaves %s, and must leave %s", requestText(breaks), recordText(got), recordText(want))
		}
		a.refuse(breaks, lease.ErrAlreadyBroken)
		a.grant(release(id))
	}
}}

// badArgumentRule applies both to authorities and to functions like lease.Step.
var badArgumentRule = rule{"M18/the-first-bad-argument-is-named", "of two bad arguments, the code is of the first of version, action, ID, proposed ID, duration, period and owner", 0, func(p *tester) {
	a := p.authority()
	const acquires, renews, releases, changes, breaks = lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease, lease.ActionChange, lease.ActionBreak
	arguments := []struct {
		code  lease.Code
		of    []lease.Action // the actions that have the argument
		spoil func(req *lease.Request)
	}{
		{lease.ErrVersion, []lease.Action{acquires, renews, releases, changes, breaks}, func(req *lease.Request) { req.Version = 1 }},
		{lease.ErrAction, []lease.Action{acquires, renews, releases, changes, breaks}, func(req *lease.Request) { req.Action = lease.ActionWrite + 1 }},
		{lease.ErrID, []lease.Action{renews, releases, changes}, func(req *lease.Request) { req.ID = lease.ID{} }},
		{lease.ErrProposed, []lease.Action{acquires, changes}, func(req *lease.Request) { req.Proposed = lease.ID{} }},
		{lease.ErrDuration, []lease.Action{acquires}, func(req *lease.Request) { req.Duration = -p.D }},
		{lease.ErrPeriod, []lease.Action{breaks}, func(req *lease.Request) { req.Period = lease.Grace(-1) }},
		{lease.ErrOwner, []lease.Action{acquires, changes}, func(req *lease.Request) { req.Owner = "a\x00b" }},
	}
	id := p.id()
	for _, good := range []lease.Request{acquire(id, p.D), renew(id), release(id), {Action: changes, ID: id, Proposed: p.id()}, {Action: breaks, Period: lease.Grace(p.D)}} {
		if p.lacksAbility(good) {
			continue
		}
		for i, first := range arguments {
			for _, second := range arguments[i+1:] {
				if !slices.Contains(first.of, good.Action) || !slices.Contains(second.of, good.Action) {
					continue
				}
				bad := good
				first.spoil(&bad)
				second.spoil(&bad)
				if _, err := a.ask(bad); lease.CodeOf(err) != first.code {
					p.Errorf("%v: %s must be refused with the code %v: %v", good.Action, requestText(bad), first.code, err)
				}
			}
		}
	}
}}

var machineRules = []rule{
	oldPeriodRule,
	badArgumentRule,
	{"M4/the-same-ID-has-a-newer-token", "tokens compare as numbers, over releases, and past the tenth", 0, func(p *tester) {
		a := p.authority()
		var last lease.Token
		for i := range 12 {
			id := p.id()
			res := a.grant(acquire(id, p.D))
			tok := res.Record.Token()
			if tok.Validate() != nil || tok.Compare(last) <= 0 || string(tok) <= string(last) {
				p.Errorf("grant %d has the token %q, after %q", i+1, tok, last)
			}
			if kept := a.grant(renew(id)).Record.Token(); kept != tok {
				p.Errorf("the renewal has the token %q, and the grant %q", kept, tok)
			}
			last = tok
			a.grant(release(id))
		}
	}},
	{"M4/the-last-epoch-is-the-last", "a grant that raises the last epoch, 2^63-1, is refused and changes nothing, and one that keeps it is granted", hasPut, func(p *tester) {
		const last = 1<<63 - 1
		a, id := p.authority(), p.id()
		for i, c := range []struct {
			state lease.State
			req   lease.Request
			code  lease.Code // 0: granted
		}{
			{lease.Expired, acquire(p.id(), p.D), lease.ErrEpochLimit},
			{lease.Leased, acquire(id, p.D), lease.ErrEpochLimit},
			{lease.Leased, lease.Request{Action: lease.ActionChange, ID: id, Proposed: p.id()}, lease.ErrEpochLimit},
			{lease.Leased, lease.Request{Action: lease.ActionChange, ID: id, Proposed: id}, 0},
			{lease.Leased, renew(id), 0},
			{lease.Leased, release(id), 0},
		} {
			if p.lacksAbility(c.req) {
				continue
			}
			name := fmt.Sprint(p.name, i)
			res := a.read(name)
			r := lease.Record{State: c.state, ID: id, Duration: p.D, Epoch: last}
			if c.state == lease.Leased {
				r.Until = res.Now.Round(0).UTC().Add(p.D)
			}
			p.history.printf("== the record of %q becomes %s", name, outcomeText(r, nil))
			p.Options.Authority.Put(p.TB, a.bare, name, r)
			if _, err := a.Do(p.ctx, name, c.req); lease.CodeOf(err) != c.code {
				p.Errorf("%s of a %v lease with the last epoch: %v, and the code must be %v", requestText(c.req), c.state, err, c.code)
			}
			after := a.read(name)
			if after.Record.Epoch != last || c.code != 0 && after.Record.ID != id {
				p.Errorf("%s with the last epoch left %s", requestText(c.req), recordText(after.Record))
			}
		}
	}},
	{"M14/the-longest-break-of-an-infinite-lease-has-an-end", "a break of an infinite lease with an infinite period is granted, and leaves the lease breaking until an end that a later break can move", CanBreak | CanBeInfinite, func(p *tester) {
		a := p.authority()
		if p.Limits.MaxPeriod > 0 {
			p.Skipf("the longest period is %v", p.Limits.MaxPeriod) // by A7, an infinite period is refused
		}
		id := p.id()
		a.grant(acquire(id, lease.Infinite))
		for range 2 { // the second break repeats the first break
			a.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(lease.Infinite)})
			r := a.inspect().Record
			if r.State != lease.Breaking || r.Validate() != nil || p.can(CanShowRecords) && r.Until.Before(time.Now().AddDate(100, 0, 0)) {
				p.Errorf("a break with an infinite period leaves %s", recordText(r))
			}
			a.refuse(renew(id), lease.ErrBroken)
			a.refuse(acquire(id, p.D), lease.ErrBreaking)
			a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
			p.pass(p.D)
		}
		a.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 2)})
		p.pass(p.D/2 + p.Slack)
		a.grant(acquire(p.id(), p.D))
	}},
	{"M18/limits-come-after-every-argument", "a request with a bad argument and a duration or a period out of the limits gets the code of the bad argument", 0, func(p *tester) {
		a := p.authority()
		l, id := p.Limits, p.id()
		var durations, periods []time.Duration // out of the limits
		if l.MinDuration > 1 {
			durations = append(durations, 1, l.MinDuration-1)
		}
		if l.MaxDuration > 0 {
			durations = append(durations, l.MaxDuration+1, lease.Infinite-1)
		}
		if l.MaxPeriod > 0 {
			periods = append(periods, l.MaxPeriod+1, lease.Infinite)
		}
		refused := func(req lease.Request, code lease.Code) {
			p.Helper()
			if _, err := a.ask(req); !p.lacksAbility(req) && lease.CodeOf(err) != code {
				p.Errorf("%s must be refused with the code %v: %v", requestText(req), code, err)
			}
		}
		for _, d := range durations {
			refused(lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d, Version: 1}, lease.ErrVersion)
			refused(acquire(lease.ID{}, d), lease.ErrProposed)
			for _, owner := range []string{"a\x00b", "\u00fc\x00b", "a\xffb", strings.Repeat("o", fields.MaxLabel+1)} {
				refused(lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d, Owner: owner}, lease.ErrOwner)
			}
		}
		for _, period := range periods {
			refused(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(period), Version: 1}, lease.ErrVersion)
		}
		if state := a.inspect().Record.State; state != lease.Available {
			p.Errorf("what was refused left the lease %v", state)
		}
	}},
}

// leaseTokenRules check the tokens of leases.
var leaseTokenRules = []rule{
	{"M4/tokens-rise", "each acquire has a newer token than every one before, whichever holder acquires, and renewals keep it", hasToken, func(p *tester) {
		w := p.world()
		both := []*contender{w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})}
		var last lease.Token
		for i := range 12 {
			a := both[i/2%2] // each contender acquires twice in a row
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

// stepMachineRules test functions like lease.Step with times that do not occur in tests of an authority.
var stepMachineRules = []rule{
	oldPeriodRule,
	badArgumentRule,
	{"M14/sums-saturate", "an end that cannot be written is never, and for a break the last time that can be; before the year 1 nothing is granted", 0, func(p *tester) {
		step := p.authority().bare.(*stepper).step
		last, id := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), p.id()
		for _, now := range []time.Time{last.Add(-time.Minute + 1), last, last.Add(time.Hour)} {
			r, err := step(lease.Record{}, acquire(id, time.Minute), now)
			if err != nil || r.State != lease.Leased || !r.Until.IsZero() || r.Validate() != nil {
				p.Errorf("a lease of a minute at %v is %s: %v, %v", now, outcomeText(r, err), err, r.Validate())
			}
		}
		forever, err := step(lease.Record{}, acquire(id, lease.Infinite), last.Add(-time.Hour))
		p.need(err, "an infinite lease")
		r, err := step(forever, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(2 * time.Hour)}, last.Add(-time.Hour))
		if err != nil || r.State != lease.Breaking || !r.Until.Equal(last) {
			p.Errorf("a break beyond the last time leaves %s", outcomeText(r, err))
		}
		if r, err := step(forever, lease.Request{Action: lease.ActionRead}, time.Time{}.Add(-1)); lease.CodeOf(err) != lease.ErrTime {
			p.Errorf("a read before the year 1 gets %s", outcomeText(r, err))
		}
	}},
}

// TestStep tests a function that implements the transitions of a lease, like [lease.Step], and checks the
// records that this function returns. It runs one subtest for each scenario and table cell in [Vectors]. It
// also calls the function with times and epochs that do not occur in a test of an authority.
func TestStep(t *testing.T, machine func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error)) {
	must(machine != nil, "TestStep: machine must not be nil")
	stepSuite(machine).test(t)
}

func stepSuite(machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)) *suite {
	s := &suite{rules: slices.Concat(vectorRules(true), stepRules), options: (&Options{Bubble: true}).withDefaults()}
	s.steps = true
	s.options.Bubble = false
	s.newAuthority = func(testing.TB) lease.Authority {
		return &stepper{machine: machine, now: time.Date(2012, 2, 12, 0, 0, 0, 0, time.UTC), records: map[string]lease.Record{}}
	}
	return s
}

// A stepper is an authority over a function like lease.Step. Its time changes only when passTo is called.
type stepper struct {
	machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)
	history *history
	now     time.Time
	records map[string]lease.Record
}

func (m *stepper) step(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
	next, err := m.machine(r, req, now)
	m.history.stepped(now, r, req, next, err)
	return next, err
}

func (m *stepper) Do(_ context.Context, name string, req lease.Request) (lease.Result, error) {
	r, err := m.step(m.records[name], req, m.now)
	m.records[name] = r
	if err != nil {
		err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return lease.Result{Record: r, Now: m.now, MinRemaining: r.Remaining(m.now)}, err
}

func (m *stepper) passTo(began time.Time, d time.Duration) time.Time {
	if began.IsZero() {
		began = m.now
	}
	m.now = began.Add(d)
	return began
}

var stepRules = slices.Concat(stepMachineRules, stepRecordRules)
