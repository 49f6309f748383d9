package leasetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// vectorRules returns a rule for every scenario and every cell of Vectors. If machine is true, the
// rules pass the record of a cell to the machine. Otherwise the rules make requests that lead to
// that record.
func vectorRules(machine bool) []rule {
	all, err := vectors.Parse(Vectors())
	if err != nil {
		panic(err) // the vectors are embedded and tested
	}
	var rules []rule
	for _, s := range scenarios(all, machine) {
		rules = append(rules, rule{
			name:  s.spec[0] + "/" + strings.ReplaceAll(s.name, " ", "-"),
			says:  s.name,
			needs: s.needs,
			check: s.check,
		})
	}
	return rules
}

// A run is the execution of a scenario.
type run struct {
	authorityProbe
	scenario
	second time.Duration // how long a second of the vector takes
	began  time.Time     // time 0 of the scenario
	took   time.Duration // the total time of the requests that changed the record
	first  uint64        // the epoch at time 0
}

func (s scenario) check(p *probe) {
	r := &run{authorityProbe: p.authority(), scenario: s, second: p.Unit}
	r.second = max(r.second, p.Limits.MinDuration/15)
	if s.needs&CanServeOldVersions != 0 {
		r.second = time.Second // before version 2012-02-12 a lease lasts 60 s
	}
	began, waited := r.clock(), time.Duration(0)
	if m, ok := r.bare.(*stepper); ok && s.record != nil {
		m.records[r.probe.name], m.now = *s.record, vectors.Noon
		began = m.now
	} else {
		for _, step := range s.setup {
			if step.At > 0 {
				r.waitUntil(step.At)
				waited = r.scale(step.At)
			}
			if _, err := r.do(step); err != nil {
				r.Fatalf("%s: to bring about the state: %s: %v", s.where, step.Text, err)
			}
		}
		if s.begins > 0 {
			r.waitUntil(s.begins)
			waited = r.scale(s.begins)
		}
	}
	r.began = time.Time{}
	r.waitUntil(0)
	r.took = r.clock().Sub(began) - waited
	r.first = r.inspect().Record.Epoch
	for _, step := range s.steps {
		r.waitUntil(step.At)
		r.step(step)
	}
}

// waitUntil waits until the time t of the scenario. The first call defines time 0.
func (r *run) waitUntil(t time.Duration) {
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

// late returns the delay of the answer to the step s.
func (r *run) late(s vectors.Step) time.Duration {
	return r.took + r.clock().Sub(r.began) - r.scale(s.At)
}

// clock returns the current time of the clock that the scenario uses.
func (r *run) clock() time.Time {
	if m, ok := r.bare.(*stepper); ok {
		return m.now
	}
	return time.Now()
}

func (r *run) scale(d time.Duration) time.Duration {
	if d == lease.Infinite || r.second == time.Second {
		return d
	}
	scaled := time.Duration(float64(d) * r.second.Seconds())
	if scaled == 0 {
		return d // a negative duration must not become zero
	}
	return scaled
}

func (r *run) do(s vectors.Step) (lease.Result, error) {
	req := s.Request
	req.Duration = r.scale(req.Duration)
	if p, ok := req.Period.Get(); ok {
		req.Period = lease.Grace(r.scale(p))
	}
	return r.Do(r.ctx, r.probe.name, req)
}

// step executes a step and compares its result with the expected result.
func (r *run) step(s vectors.Step) {
	r.Helper()
	var before lease.Result
	if s.Want.Code != 0 {
		before = r.inspect()
	}
	res, err := r.do(s)
	if err == nil && s.Request.Action != lease.ActionRead {
		// Shift time 0 by the delay of the answer, because the duration may have started as late as
		// the answer.
		took := max(0, r.clock().Sub(r.began)-r.scale(s.At)-r.Slack/4)
		r.began, r.took = r.began.Add(took), r.took+took
	}
	wrong := func(what string, got, want any) {
		r.Helper()
		r.Fatalf("%s: %s\n%s is %v, and must be %v", r.where, s.Text, what, got, want)
	}
	if code := lease.CodeOf(err); code != s.Want.Code || err != nil && code == 0 {
		wrong("the outcome", codeText(code, err), codeText(s.Want.Code, nil))
	}
	if op := (*lease.OpError)(nil); err != nil && (!errors.As(err, &op) || op.Op != s.Request.Action.String() || op.Name != r.probe.name) {
		wrong("the error", err, "a *lease.OpError with the operation and the name")
	}
	if s.Want.Code != 0 {
		after := r.inspect()
		if was, is := before.Record.At(after.Now), after.Record; !r.sameRecords(was, is) {
			wrong("the record after the refusal", recordText(is), recordText(was))
		}
		if !s.Want.Code.Refusal() || res.Now.IsZero() && !r.can(CanShowRecords) {
			res = after
		}
	}
	rec := res.Record
	if rec.State != s.Want.State {
		wrong("the state", rec.State, s.Want.State)
	}
	if w := s.Want.Left; w != nil {
		want := r.scale(*w)
		got := res.MaxRemaining()
		more := got-want > r.Slack
		if !r.can(CanShowRecords) && want > 0 {
			more = false // the authority may only know an upper bound
		}
		if got != want && (got == lease.Infinite || want == lease.Infinite || more || want-got > r.Slack+r.late(s)) {
			wrong("what is left", got, want)
		}
	}
	if !r.can(CanShowRecords) {
		return
	}
	if w := s.Want.ID; w != nil && rec.ID != *w {
		wrong("the ID", rec.ID, *w)
	}
	if w := s.Want.Owner; w != nil && rec.Owner != *w {
		wrong("the owner", rec.Owner, *w)
	}
	if w := s.Want.Duration; w != nil && rec.Duration != r.scale(*w) {
		wrong("the duration", rec.Duration, r.scale(*w))
	}
	if w := s.Want.Epoch; w != nil && rec.Epoch != r.first+*w {
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
