package leasetest

import (
	"embed"
	"io/fs"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

//go:embed vectors
var files embed.FS

// Vectors returns a file system with test vectors, for implementations in any language. The text
// files contain every cell of the outcome tables, the list of changes, edge cases, and scenarios of
// several steps. The file README.md in it describes the format. [TestAuthority] and [TestStep] use
// these vectors.
func Vectors() fs.FS {
	sub, err := fs.Sub(files, "vectors")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}

// A scenario is a list of steps from Vectors. A cell of a table is a scenario with one step.
type scenario struct {
	where  string // file and line
	name   string
	spec   []string // clauses of SPEC.md
	needs  Ability
	record *lease.Record  // the record before a cell, for a machine; otherwise nil
	setup  []vectors.Step // steps before time 0 of the scenario
	begins time.Duration
	steps  []vectors.Step
}

var needs = map[string]Ability{
	"breaking": CanBreak, "changing": CanChange, "using": CanUse, "infinite": CanBeInfinite, "dialects": CanServeOldVersions,
	"exact": exactTime, "unlimited": noLimits, "short": shortLeases,
}

// scenarios returns all scenarios and cells of Vectors. The record of some cells cannot be made
// with requests. Such cells are returned only if machine is true.
func scenarios(all vectors.Vectors, machine bool) (found []scenario) {
	for _, row := range all.Rows {
		for _, c := range row.Cells {
			if s, ok := cell(row, c, machine); ok {
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

// cell returns the cell c as a scenario of one step. It returns false if the record of the cell
// cannot be made with requests.
func cell(row vectors.Row, c vectors.Cell, machine bool) (s scenario, ok bool) {
	s = scenario{where: c.Where, name: strings.TrimSuffix(row.File, ".txt") + " " + row.Name + " on " + c.Record.State.String(), spec: row.Spec}
	step := vectors.Step{Text: row.Name, At: row.Pass, Request: row.Request}
	if row.Pass > 0 {
		step.Request.Action = lease.ActionRead
	}
	step.Want = c.Want.Complete(c.Record, vectors.Noon.Add(row.Pass))
	s.steps = []vectors.Step{step}
	if machine {
		s.record = &c.Record
		return s, true
	}
	s.setup, ok = vectors.BringAbout(c.Record)
	for i := range s.setup { // the setup ends at the time begins, which is time 0 of the steps
		s.begins = max(s.begins, -s.setup[i].At)
	}
	for i := range s.setup {
		s.setup[i].At += s.begins
	}
	s.needs = s.inferAbilities()
	return s, ok
}

// inferAbilities returns the abilities that the steps of the scenario need.
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
			a |= CanServeOldVersions
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

// fraction reports whether d is a positive time that is not a multiple of a millisecond. To measure
// such a time, an exact clock is needed.
func fraction(d time.Duration) bool { return d > 0 && d != lease.Infinite && d%time.Millisecond != 0 }
