package leasetest

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// machineRules check the transitions of an authority.
var machineRules = []rule{
	{"M4/tokens-outlive-idleness", "the first grant after a long time has a newer token than the last one before it", 0, func(p *probe) {
		a := p.authority()
		var last uint64
		for range 3 {
			epoch := a.grant(acquire(p.id(), p.D)).Record.Epoch
			if epoch <= last {
				p.Errorf("epoch %d was granted after %d, and after %v", epoch, last, p.idleTime())
			}
			last = epoch
			p.pass(p.idleTime())
		}
	}},
	{"M4/the-same-ID-has-a-newer-token", "tokens compare as numbers, over releases, and past the tenth", 0, func(p *probe) {
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
				if p.lacksAbility(bad.req) {
					continue
				}
				_, err := a.ask(bad.req)
				if lease.CodeOf(err) != bad.code || lease.CodeOf(err).Refusal() {
					p.Errorf("%s: %s must be refused with the code %v: %v", state, requestText(bad.req), bad.code, err)
				}
			}
			if after := a.inspect(); !p.sameRecords(before.Record.At(after.Now), after.Record) {
				p.Errorf("%s: bad requests changed the record from %s to %s", state, recordText(before.Record), recordText(after.Record))
			}
		}
	}},
}

// leaseTokenRules check the tokens of leases.
var leaseTokenRules = []rule{
	{"M4/tokens-rise", "each acquire has a newer token than every one before, whichever holder acquires, and renewals keep it", hasToken, func(p *probe) {
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

// stepMachineRules check a machine with times and epochs that a test of an authority cannot reach.
var stepMachineRules = []rule{
	{"M4/the-epoch-has-a-limit", "at the epoch 2^63-1 a grant is refused, and changes nothing", 0, func(p *probe) {
		step := p.authority().bare.(*stepper).step
		now, id := time.Date(2012, 2, 12, 0, 0, 0, 0, time.UTC), p.id()
		last := lease.Record{State: lease.Leased, ID: id, Duration: time.Minute, Until: now.Add(time.Minute), Epoch: math.MaxInt64}
		for _, req := range []lease.Request{acquire(id, time.Minute), {Action: lease.ActionChange, ID: id, Proposed: p.id()}} {
			if r, err := step(last, req, now); lease.CodeOf(err) != lease.ErrEpochLimit || r != last {
				p.Errorf("%s gets %s", requestText(req), outcomeText(r, err))
			}
		}
		// The following requests grant no new token.
		for _, req := range []lease.Request{renew(id), release(id), {Action: lease.ActionChange, ID: id, Proposed: id}} {
			if r, err := step(last, req, now); err != nil || r.Epoch != last.Epoch {
				p.Errorf("%s gets %s", requestText(req), outcomeText(r, err))
			}
		}
		last.Epoch--
		if r, err := step(last, acquire(id, time.Minute), now); err != nil || r.Epoch != math.MaxInt64 {
			p.Errorf("before the limit an acquire gets %s", outcomeText(r, err))
		}
	}},
	{"M14/sums-saturate", "an end that cannot be written is never, and for a break the last time that can be; before the year 1 nothing is granted", 0, func(p *probe) {
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

// TestStep tests a function that implements the transitions of a lease, like [lease.Step]. It runs
// one subtest for each scenario and each cell of [Vectors]. It also tests the function with times
// and epochs that a test of an authority cannot reach.
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

// A stepper is an authority over a machine. Its time changes only when passTo is called.
type stepper struct {
	machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)
	history *history
	now     time.Time
	records map[string]lease.Record
}

// step calls the machine and records the call in the history.
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
