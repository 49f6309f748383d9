package leasetest

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestStep holds an implementation of the machine, a function like [lease.Step], to
// [Vectors], a subtest a scenario, and to what no authority can be asked. Records are passed to it as it returned them.
func TestStep(t *testing.T, machine func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error)) {
	must(machine != nil, "TestStep: machine must not be nil")
	stepSuite(machine).test(t)
}

func stepSuite(machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)) *suite {
	s := &suite{rules: slices.Concat(vectorRules(), stepRules), options: (&Options{Bubble: true}).withDefaults()}
	s.steps = true
	s.options.Bubble = false
	s.newAuthority = func(testing.TB) lease.Authority {
		return &stepper{machine: machine, now: time.Date(2012, 2, 12, 0, 0, 0, 0, time.UTC), records: map[string]lease.Record{}}
	}
	return s
}

// stepRules are what needs times that no authority comes to.
var stepRules = []rule{
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
	{"M4/the-epoch-has-a-limit", "at the epoch 2^63-1 a grant is refused, and changes nothing", 0, func(p *probe) {
		step := p.authority().bare.(*stepper).step
		now, id := time.Date(2012, 2, 12, 0, 0, 0, 0, time.UTC), p.id()
		last := lease.Record{State: lease.Leased, ID: id, Duration: time.Minute, Until: now.Add(time.Minute), Epoch: math.MaxInt64}
		for _, req := range []lease.Request{acquire(id, time.Minute), {Action: lease.ActionChange, ID: id, Proposed: p.id()}} {
			if r, err := step(last, req, now); lease.CodeOf(err) != lease.ErrEpochLimit || r != last {
				p.Errorf("%s gets %s", requestText(req), outcomeText(r, err))
			}
		}
		for _, req := range []lease.Request{renew(id), release(id), {Action: lease.ActionChange, ID: id, Proposed: id}} { // these grant no token
			if r, err := step(last, req, now); err != nil || r.Epoch != last.Epoch {
				p.Errorf("%s gets %s", requestText(req), outcomeText(r, err))
			}
		}
		last.Epoch--
		if r, err := step(last, acquire(id, time.Minute), now); err != nil || r.Epoch != math.MaxInt64 {
			p.Errorf("before the limit an acquire gets %s", outcomeText(r, err))
		}
	}},
	{"R1/records-are-in-UTC", "whatever zone the time is told in, the record is a valid one, in UTC and without a monotonic reading", 0, func(p *probe) {
		step := p.authority().bare.(*stepper).step
		id := p.id()
		for _, now := range []time.Time{time.Now(), time.Date(2012, 2, 12, 0, 0, 0, 0, time.FixedZone("east", 5*3600))} {
			r := lease.Record{}
			for _, req := range []lease.Request{acquire(id, time.Minute), renew(id), {Action: lease.ActionBreak, Period: lease.Grace(time.Second)}} {
				var err error
				if r, err = step(r, req, now); err != nil || r.Validate() != nil {
					p.Errorf("%s at %v gets %s: %v", requestText(req), now, outcomeText(r, err), r.Validate())
				}
			}
		}
	}},
}

// A stepper is an authority over a machine, in a time that passes only as it is told.
type stepper struct {
	machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)
	history *history
	now     time.Time
	records map[string]lease.Record
}

// step has the machine decide, and puts that in the history.
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
