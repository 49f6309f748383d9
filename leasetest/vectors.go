package leasetest

import (
	"embed"
	"io/fs"
	"time"

	"github.com/fencedlease/lease"
)

//go:embed vectors
var vectors embed.FS

// Vectors are the facts of the machine as text files, for implementations in any language:
// the outcome tables cell by cell, the change list, edge cases, and scenarios of several
// steps. The format is described in its README.md. [TestAuthority] and [TestStep] run them.
func Vectors() fs.FS {
	sub, err := fs.Sub(vectors, "vectors")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}

// A scenario is a vector.
type scenario struct {
	file  string // and line, for a message
	name  string
	spec  []string // clauses
	needs Ability
	given string
	steps []step
}

// A step is a request at a time, and what must come of it.
type step struct {
	text string
	at   time.Duration
	req  lease.Request
	want outcome
}

// An outcome is what a step requires of the answer.
type outcome struct {
	code   lease.Code // 0: granted
	state  lease.State
	id     *lease.ID
	owner  *string
	left   *time.Duration
	grants *uint64
}

// letters are the IDs that vectors speak of.
var letters = map[string]lease.ID{
	"A": lease.MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"),
	"B": lease.MustParseID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"),
	"C": lease.MustParseID("cccccccc-cccc-4ccc-8ccc-cccccccccccc"),

	"none": {},
}

var needs = map[string]Ability{
	"breaking": CanBreak, "changing": CanChange, "using": CanUse, "infinite": CanBeInfinite, "dialects": CanServeOldVersions, "exact": exactTime, "short": shortLeases,
}

// setups are the steps that bring about what a scenario is given.
var setups = map[string][]string{
	"available": {},
	"leased":    {"0s acquire proposed=A duration=60s => ok leased"},
	"breaking":  {"0s acquire proposed=A duration=60s => ok leased", "0s break period=30s => ok breaking"},
	"broken":    {"0s acquire proposed=A duration=60s => ok leased", "0s break period=0s => ok broken"},
	"expired":   {"0s acquire proposed=A duration=15s => ok leased", "15s read => ok expired"},
	"infinite":  {"0s acquire proposed=A duration=infinite => ok leased"},
	"released":  {"0s acquire proposed=A duration=60s => ok leased", "0s release id=A => ok available"},
}

// inferred is what the steps of a scenario need.
func (v scenario) inferred() (a Ability) {
	switch v.given {
	case "breaking", "broken":
		a |= CanBreak
	case "infinite":
		a |= CanBeInfinite
	}
	for _, s := range v.steps {
		switch {
		case s.req.Action == lease.ActionBreak:
			a |= CanBreak
		case s.req.Action == lease.ActionChange:
			a |= CanChange
		case s.req.Action == lease.ActionWrite, s.req.Action == lease.ActionRead && !s.req.ID.IsZero():
			a |= CanUse
		case s.req.Duration == lease.Infinite:
			a |= CanBeInfinite
		}
		if s.req.Version != 0 {
			a |= CanServeOldVersions
		}
	}
	return a
}
