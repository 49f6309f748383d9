package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestStep holds an implementation of the machine, a function like [lease.Step], to
// [Vectors], a subtest a scenario, and to what no authority can be asked. Records are passed to it as it returned them.
func TestStep(t *testing.T, machine func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error)) {
	stepSuite(machine).test(t)
}

func stepSuite(machine func(lease.Record, lease.Request, time.Time) (lease.Record, error)) *suite {
	s := &suite{rules: slices.Concat(vectorRules(), stepRules), options: (&Options{Lacks: exact}).withDefaults()}
	s.options.Unit, s.options.Slack, s.options.Lacks = time.Second, 0, 0
	s.newAuthority = func(testing.TB) lease.Authority {
		return &stepper{step: machine, now: time.Date(2012, 2, 12, 0, 0, 0, 0, time.UTC), records: map[string]lease.Record{}}
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
			if err != nil || r.State != lease.Leased || !r.Until.IsZero() || r.Valid() != nil {
				p.Errorf("a lease of a minute at %v is %s: %v, %v", now, outcomeText(r, err), err, r.Valid())
			}
		}
		forever, err := step(lease.Record{}, acquire(id, lease.Infinite), last.Add(-time.Hour))
		p.need(err, "an infinite lease")
		r, err := step(forever, lease.Request{Action: lease.Break, Period: lease.In(2 * time.Hour)}, last.Add(-time.Hour))
		if err != nil || r.State != lease.Breaking || !r.Until.Equal(last) {
			p.Errorf("a break beyond the last time leaves %s", outcomeText(r, err))
		}
		if r, err := step(forever, lease.Request{Action: lease.Read}, time.Time{}.Add(-1)); lease.CodeOf(err) != lease.ErrTime {
			p.Errorf("a read before the year 1 gets %s", outcomeText(r, err))
		}
	}},
}

// A stepper is an authority over a machine, in a time that passes only as it is told.
type stepper struct {
	step    func(lease.Record, lease.Request, time.Time) (lease.Record, error)
	now     time.Time
	records map[string]lease.Record
}

func (m *stepper) Do(_ context.Context, name string, req lease.Request) (lease.Result, error) {
	r, err := m.step(m.records[name], req, m.now)
	m.records[name] = r
	if err != nil {
		err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return lease.Result{Record: r, Now: m.now, Sure: r.Remaining(m.now)}, err
}

func (m *stepper) passTo(began time.Time, d time.Duration) time.Time {
	if began.IsZero() {
		began = m.now
	}
	m.now = began.Add(d)
	return began
}

// vectorRules are the rules that Vectors state.
func vectorRules() []rule {
	scenarios, err := parseVectors(Vectors())
	if err != nil {
		panic(err) // they are embedded, and tested
	}
	var rules []rule
	for _, v := range scenarios {
		rules = append(rules, rule{
			name:  v.spec[0] + "/" + strings.ReplaceAll(v.name, " ", "-"),
			says:  v.name,
			needs: v.needs,
			check: v.check,
		})
	}
	return rules
}

// A run is a scenario under way.
type run struct {
	authorityProbe
	scenario
	second time.Duration // how long a second of the vector is
	began  time.Time     // when time 0 was
	first  uint64        // the epoch at time 0
}

func (v scenario) check(p *probe) {
	r := &run{authorityProbe: p.authority(), scenario: v, second: p.Unit}
	r.second = max(r.second, p.Limits.MinDuration/15)
	if v.needs&Dialects != 0 {
		r.second = time.Second // before 2012-02-12 a lease lasts 60 of them
	}
	for _, text := range setups[v.given] {
		s, err := parseStep(text)
		r.need(err, "set-up")
		if s.at > 0 {
			r.until(s.at)
		}
		if _, err := r.do(s); err != nil {
			r.Fatalf("%s: given %s: %s: %v", v.file, v.given, text, err)
		}
	}
	r.began = time.Time{}
	r.until(0)
	r.first = r.inspect().Record.Epoch
	for _, s := range v.steps {
		r.until(s.at)
		r.step(s)
	}
}

// until waits until time t of the scenario; the first call tells what time is.
func (r *run) until(t time.Duration) {
	t = r.scale(t)
	if m, ok := r.bare.(*stepper); ok {
		r.began = m.passTo(r.began, t)
		return
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	if left := t - time.Since(r.began); left > 0 {
		r.pass(left + r.Slack/4)
	}
}

func (r *run) scale(d time.Duration) time.Duration {
	if d == lease.Infinite || r.second == time.Second {
		return d
	}
	return time.Duration(float64(d) * r.second.Seconds())
}

func (r *run) do(s step) (lease.Result, error) {
	req := s.req
	req.Duration = r.scale(req.Duration)
	if p, ok := req.Period.Get(); ok {
		req.Period = lease.In(r.scale(p))
	}
	return r.Do(r.ctx, r.probe.name, req)
}

// step carries a step out and compares.
func (r *run) step(s step) {
	r.Helper()
	var before lease.Result
	if s.want.code != 0 {
		before = r.inspect()
	}
	res, err := r.do(s)
	wrong := func(what string, got, want any) {
		r.Helper()
		r.Fatalf("%s: %s\n%s is %v, and must be %v", r.file, s.text, what, got, want)
	}
	if code := lease.CodeOf(err); code != s.want.code || err != nil && code == 0 {
		wrong("the outcome", codeText(code, err), codeText(s.want.code, nil))
	}
	if op := (*lease.OpError)(nil); err != nil && (!errors.As(err, &op) || op.Op != s.req.Action.String() || op.Name != r.probe.name) {
		wrong("the error", err, "a *lease.OpError with the operation and the name")
	}
	if s.want.code != 0 {
		after := r.inspect()
		if was, is := before.Record.At(after.Now), after.Record; !r.same(was, is) {
			wrong("the record after the refusal", outcomeText(is, nil), outcomeText(was, nil))
		}
		if !s.want.code.Refusal() || res.Now.IsZero() && r.Lacks&Disclosing != 0 {
			res = after
		}
	}
	rec := res.Record
	if rec.State != s.want.state {
		wrong("the state", rec.State, s.want.state)
	}
	if w := s.want.left; w != nil {
		want := r.scale(*w)
		if got := res.Remaining(); got != want && (got == lease.Infinite || want == lease.Infinite || (got-want).Abs() > r.Slack) {
			wrong("what is left", got, want)
		}
	}
	if r.Lacks&Disclosing != 0 {
		return
	}
	if w := s.want.id; w != nil && rec.ID != *w {
		wrong("the ID", rec.ID, *w)
	}
	if w := s.want.owner; w != nil && rec.Owner != *w {
		wrong("the owner", rec.Owner, *w)
	}
	if w := s.want.grants; w != nil && rec.Epoch != r.first+*w {
		wrong("the epoch", rec.Epoch, fmt.Sprintf("%d+%d", r.first, *w))
	}
}

func codeText(code lease.Code, err error) string {
	switch {
	case code != 0:
		return code.String()
	case err != nil:
		return "unknown: " + err.Error()
	}
	return "ok"
}
