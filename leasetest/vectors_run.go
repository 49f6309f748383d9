package leasetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

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
	took   time.Duration // what the requests that changed something took, in real time
	first  uint64        // the epoch at time 0
}

func (v scenario) check(p *probe) {
	r := &run{authorityProbe: p.authority(), scenario: v, second: p.Unit}
	r.second = max(r.second, p.Limits.MinDuration/15)
	if v.needs&CanServeOldVersions != 0 {
		r.second = time.Second // before 2012-02-12 a lease lasts 60 of them
	}
	began, waited := r.clock(), time.Duration(0)
	for _, text := range setups[v.given] {
		s, err := parseStep(text)
		r.need(err, "set-up")
		if s.at > 0 {
			r.until(s.at)
			waited = r.scale(s.at)
		}
		if _, err := r.do(s); err != nil {
			r.Fatalf("%s: given %s: %s: %v", v.file, v.given, text, err)
		}
	}
	r.began = time.Time{}
	r.until(0)
	r.took = r.clock().Sub(began) - waited
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

// late is how much later than its time a step was answered.
func (r *run) late(s step) time.Duration {
	return r.took + r.clock().Sub(r.began) - r.scale(s.at)
}

// clock is the time in which the scenario runs.
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
	return time.Duration(float64(d) * r.second.Seconds())
}

func (r *run) do(s step) (lease.Result, error) {
	req := s.req
	req.Duration = r.scale(req.Duration)
	if p, ok := req.Period.Get(); ok {
		req.Period = lease.Grace(r.scale(p))
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
	if err == nil && s.req.Action != lease.ActionRead {
		// What it granted may have begun with the answer, and the steps before were late too.
		took := max(0, r.clock().Sub(r.began)-r.scale(s.at)-r.Slack/4)
		r.began, r.took = r.began.Add(took), r.took+took
	}
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
			wrong("the record after the refusal", recordText(is), recordText(was))
		}
		if !s.want.code.Refusal() || res.Now.IsZero() && !r.can(CanShowRecords) {
			res = after
		}
	}
	rec := res.Record
	if rec.State != s.want.state {
		wrong("the state", rec.State, s.want.state)
	}
	if w := s.want.left; w != nil {
		want := r.scale(*w)
		if got := res.MaxRemaining(); got != want && (got == lease.Infinite || want == lease.Infinite || got-want > r.Slack || want-got > r.Slack+r.late(s)) {
			wrong("what is left", got, want)
		}
	}
	if !r.can(CanShowRecords) {
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
