package leasetest

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

//go:embed vectors
var files embed.FS

// Vectors returns the test vectors, for implementations in any language. The vectors have four parts: tables
// that contain the outcome of each action in each state, the changes from the old to the new dialect, edge
// cases, and scenarios of several steps. The file README.md in the returned file system describes the format.
// [TestAuthority] and [TestStep] use the vectors.
func Vectors() fs.FS {
	sub, err := fs.Sub(files, "vectors")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}

// A scenario is a list of steps from Vectors. Each cell of a table is a scenario with a single step.
type scenario struct {
	where  string // file and line
	name   string
	spec   []string // clauses of SPEC.md
	needs  Ability
	record *lease.Record  // the record before the step of a table cell, for a function like lease.Step; otherwise nil
	now    time.Time      // the time of the field record
	setup  []vectors.Step // steps before time 0 of the scenario
	begins time.Duration
	steps  []vectors.Step
}

var needs = map[string]Ability{
	"breaking": CanBreak, "changing": CanChange, "using": CanUse, "infinite": CanBeInfinite, "dialects": CanServeOldVersions | oldLeases,
	"exact": exactTime, "unlimited": noLimits, "short": shortLeases,
}

// scenarios returns all scenarios and table cells of Vectors. If forStep is false, it omits the cells whose
// record cannot be produced by requests.
func scenarios(all vectors.Vectors, forStep bool) (found []scenario) {
	for _, row := range all.Rows {
		for _, c := range row.Cells {
			if s, ok := cell(row, c, forStep); ok {
				found = append(found, s)
			}
		}
	}
	for _, v := range all.Scenarios {
		s := scenario{where: v.Where, name: v.Name, spec: v.Spec, setup: v.Setup(), steps: v.Steps}
		if n := len(s.setup); n > 0 {
			s.begins = s.setup[n-1].At
		}
		for _, word := range v.Needs {
			s.needs |= needs[word]
		}
		found = append(found, s)
	}
	return found
}

// cell returns a scenario of one step for the table cell c, which specifies the record before the step. If
// forStep is true, the scenario contains that record, for a function like lease.Step. If forStep is false,
// the scenario begins with requests that produce the record. Some records cannot be produced by requests, and
// the second result is then false.
func cell(row vectors.Row, c vectors.Cell, forStep bool) (s scenario, ok bool) {
	s = scenario{where: c.Where, name: strings.TrimSuffix(row.File, ".txt") + " " + row.Name + " on " + c.Record.State.String(), spec: row.Spec}
	step := vectors.Step{Text: row.Name, At: row.Pass, Request: row.Request}
	if row.Pass > 0 {
		step.Request.Action = lease.ActionRead
	}
	step.Want = c.Want.Complete(c.Record, row.Now.Add(row.Pass))
	s.steps = []vectors.Step{step}
	if c.Want.Code == lease.ErrTime {
		return s, false // a scenario begins with a read, which would fail as well; M14/sums-saturate tests this error
	}
	if forStep {
		s.record, s.now = &c.Record, row.Now
		return s, true
	}
	if !row.Now.Equal(vectors.Noon) {
		return s, false // no requests can set the clock of an authority to row.Now
	}
	s.setup, ok = vectors.BringAbout(c.Record)
	for i := range s.setup { // the setup ends at the time s.begins, which is time 0 of the steps
		s.begins = max(s.begins, -s.setup[i].At)
	}
	for i := range s.setup {
		s.setup[i].At += s.begins
	}
	s.needs = s.inferAbilities()
	return s, ok
}

// inferAbilities returns the abilities that an authority needs to run the scenario.
func (s scenario) inferAbilities() (a Ability) {
	for _, step := range append(s.setup[:len(s.setup):len(s.setup)], s.steps...) {
		req := step.Request
		switch {
		case req.Action == lease.ActionBreak:
			a |= CanBreak
		case req.Action == lease.ActionChange:
			a |= CanChange
		case req.Action == lease.ActionWrite, req.Action == lease.ActionRead && !req.ID.IsZero():
			a |= CanUse
		case req.Duration == lease.Infinite:
			a |= CanBeInfinite
		}
		if req.Version != 0 {
			a |= CanServeOldVersions | oldLeases
		}
		if period, _ := req.Period.Get(); fraction(period) || fraction(step.At) || step.At > 1e6*time.Second {
			a |= exactTime
		}
		if fraction(req.Duration) && req.Duration > 0 && req.Duration < time.Second {
			a |= shortLeases
		}
	}
	return a
}

// The function fraction reports whether d contains a fraction of a millisecond. Only an exact clock can
// measure such a duration.
func fraction(d time.Duration) bool { return d > 0 && d != lease.Infinite && d%time.Millisecond != 0 }

// vectorRules returns one rule for each scenario in Vectors, and one for each table cell, which consists of a
// record, a request and the expected answer. If forStep is true, the rules pass the record to a function like
// lease.Step. If forStep is false, the rules send requests to an authority until it has this record, and then
// test the authority.
func vectorRules(forStep bool) []rule {
	all, err := vectors.Parse(Vectors())
	if err != nil {
		panic(err) // the vectors are embedded and tested
	}
	var rules []rule
	for _, s := range scenarios(all, forStep) {
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
	authorityTester
	scenario
	second time.Duration // how long a second of the vector takes
	began  time.Time     // time 0 of the scenario
	took   time.Duration // the total time of the requests that changed the record
	first  uint64        // the epoch that the vectors count as 0
	before lease.Record  // the record after the last step
}

func (s scenario) check(p *tester) {
	r := &run{authorityTester: p.authority(), scenario: s, second: p.Unit}
	r.second = max(r.second, p.Limits.MinDuration/15)
	if s.needs&CanServeOldVersions != 0 {
		r.second = time.Second // before version 2012-02-12 a lease lasts 60 s
	}
	if longest := r.longestPeriod(); p.Limits.MaxPeriod > 0 && longest > p.Limits.MaxPeriod {
		p.Skipf("needs a period of %v, and Limits.MaxPeriod is %v", longest, p.Limits.MaxPeriod)
	}
	began, waited := r.clock(), time.Duration(0)
	if m, ok := r.bare.(*stepper); ok && s.record != nil {
		m.records[r.tester.name], m.now = *s.record, s.now
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
	r.before = r.inspect().Record
	r.first = r.before.Epoch
	for _, step := range s.steps {
		r.waitUntil(step.At)
		r.step(step)
	}
}

// longestPeriod returns the longest finite break period in the scenario. It ignores the periods in requests
// of versions before 2012-02-12, because the authority ignores them, too.
func (r *run) longestPeriod() (longest time.Duration) {
	for _, step := range slices.Concat(r.setup, r.steps) {
		v := step.Request.Version
		looksAtPeriod := v == 0 || v >= lease.Version20120212
		if period, _ := step.Request.Period.Get(); period != lease.Infinite && looksAtPeriod {
			longest = max(longest, r.scale(period))
		}
	}
	return longest
}

// waitUntil waits until the time t of the scenario. The time of the first call becomes time 0.
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
		return d // keep d, because a negative duration must not become zero
	}
	return scaled
}

func (r *run) do(s vectors.Step) (lease.Result, error) { return r.send(r.tester.name, s.Request) }

func (r *run) send(name string, req lease.Request) (lease.Result, error) {
	req.Duration = r.scale(req.Duration)
	if p, ok := req.Period.Get(); ok {
		req.Period = lease.Grace(r.scale(p))
	}
	return r.Do(r.ctx, name, req)
}

// step executes the step s, and compares the result with the result that s specifies.
func (r *run) step(s vectors.Step) {
	r.Helper()
	var before lease.Result
	if s.Want.Code != 0 {
		before = r.inspect()
	}
	res, err := r.do(s)
	if err == nil && s.Request.Action != lease.ActionRead {
		// If the answer was late, the duration of the lease may have begun late as well. Move time 0 forward
		// by the delay of the answer. Otherwise a later step, such as a read of the expired lease, could come
		// too early.
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
	if op := (*lease.OpError)(nil); err != nil && (!errors.As(err, &op) || op.Op != s.Request.Action.String() || op.Name != r.tester.name) {
		wrong("the error", err, "a *lease.OpError with the operation and the name")
	}
	if s.Want.Code != 0 {
		after := r.inspect()
		was, is := before.Record.At(after.Now), after.Record
		if !r.sameRecords(was, is) || is.Epoch > was.Epoch && !r.raisesEpochBy(0, s) {
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
			more = false // the authority may know only an upper bound of the time that is left
		}
		less := want-got > r.Slack+r.late(s)
		isOneInfinite := got == lease.Infinite || want == lease.Infinite
		if got != want && (isOneInfinite || more || less) {
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
		_, exact := r.bare.(*stepper)
		if exact || !epochMayRise(r.before) || rec.Epoch < r.first+*w || !r.raisesEpochBy(r.first+*w-r.before.Epoch, s) {
			wrong("the epoch", rec.Epoch, fmt.Sprintf("%d+%d", r.first, *w))
		}
		r.first = rec.Epoch - *w // the epoch rose without a grant, so the next steps count from the new epoch
	}
	r.before = rec
}

// raisesEpochBy reports whether an authority may have raised an epoch by n during the step s. In some
// authorities, a write or a read of one name can raise the epoch of another name, if that name has no record.
// To find out, raisesEpochBy sends the same request for a name that was never used. It returns true if the
// epoch of that name rises by n as well, or if the epoch differs between two reads.
func (r *run) raisesEpochBy(n uint64, s vectors.Step) bool {
	r.Helper()
	name := r.tester.name + "/unused"
	first, second := r.read(name).Record.Epoch, r.read(name).Record.Epoch
	_, _ = r.send(name, s.Request)
	return first != second || r.read(name).Record.Epoch == second+n
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
