// Package vectors reads the files of leasetest/vectors, whose README.md describes their format.
package vectors

import (
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Vectors is the content of all vector files.
type Vectors struct {
	Rows      []Row
	Scenarios []Scenario
}

// A Row is a test of one request, or of the passing of time, on several records.
type Row struct {
	File    string // such as "table.txt"
	Name    string
	Quote   string   // the sentence of the document that the row shows; may be empty
	Spec    []string // clauses of SPEC.md
	Now     time.Time
	Pass    time.Duration
	Request lease.Request // zero if Pass is not zero
	Cells   []Cell
}

// A Cell is one record of a Row, and its expected outcome.
type Cell struct {
	Where     string       // file and line
	Record    lease.Record // at the Now of the row
	Published string       // the words of the document's table; may be empty
	Want      Outcome
	Status    string // the HTTP status that the document gives; may be empty
	Service   string // the status that the service answers; empty if it equals Status
}

// A Scenario is a sequence of requests.
type Scenario struct {
	Where string // file and line
	Name  string
	Spec  []string // clauses of SPEC.md
	Needs []string
	Given string // the state in which the scenario begins
	Steps []Step
}

// A Step is a request at a time, and its expected outcome.
type Step struct {
	Text    string
	At      time.Duration
	Request lease.Request
	Want    Outcome
}

// An Outcome is the expected outcome of a request. A field is nil if the file does not name the value.
type Outcome struct {
	Code     lease.Code // 0: granted
	State    lease.State
	ID       *lease.ID
	Owner    *string
	Duration *time.Duration
	Left     *time.Duration // how long the lease stays locked
	AtMost   bool           // if the lease had less time left than Left, it keeps that time
	Epoch    *uint64        // by how much the epoch has risen
}

// AzureLimits are the limits of the Azure Blob service: a duration of 15 to 60 seconds, and a break period of at
// most 60.
var AzureLimits = lease.Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

// Noon is the Now of a row if its file names no other time.
var Noon = time.Date(2012, 1, 26, 12, 0, 0, 0, time.UTC)

// MustParseID is lease.ParseID for a constant. It panics if s is not valid.
func MustParseID(s string) lease.ID {
	id, err := lease.ParseID(s)
	if err != nil {
		panic(err)
	}
	return id
}

// IDs are the lease IDs for the letters in the files. X stands for an ID that the service generates.
var IDs = map[string]lease.ID{
	"A": MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"),
	"B": MustParseID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"),
	"C": MustParseID("cccccccc-cccc-4ccc-8ccc-cccccccccccc"),
	"X": MustParseID("ffffffff-ffff-4fff-8fff-ffffffffffff"),

	"none": {},
}

// Of returns the record r as it is after the outcome o, at the time now. A field that the outcome does not
// name keeps its value, and a refusal does not change r.
func (o Outcome) Of(r lease.Record, now time.Time) lease.Record {
	if o.Code != 0 {
		return r
	}
	if r.State = o.State; !r.State.Locked() {
		r.Until = time.Time{}
	}
	if o.ID != nil {
		r.ID = *o.ID
	}
	if o.Owner != nil {
		r.Owner = *o.Owner
	}
	if o.Duration != nil {
		r.Duration = *o.Duration
	}
	if o.Epoch != nil {
		r.Epoch += *o.Epoch
	}
	switch left := o.Left; {
	case left == nil:
	case *left == lease.Infinite:
		r.Until = time.Time{}
	case !o.AtMost || now.Add(*left).Before(r.Until):
		r.Until = now.Add(*left)
	}
	return r
}

// Complete returns the outcome o with a value in every field, for a request on the record r at the time
// now. Epoch is the amount by which the epoch rises.
func (o Outcome) Complete(r lease.Record, now time.Time) Outcome {
	next := o.Of(r, now)
	rise, left := next.Epoch-r.Epoch, next.Remaining(now)
	return Outcome{Code: o.Code, State: next.State, ID: &next.ID, Owner: &next.Owner, Duration: &next.Duration, Left: &left, Epoch: &rise}
}

// BringAbout returns requests that give a new name the record of a cell, except for the epoch, at time 0.
// Some can be before that time, but none is after it. If no requests can create the record, it returns
// false. The record must be of a row whose Now is Noon.
func BringAbout(r lease.Record) (steps []Step, ok bool) {
	step := func(at time.Duration, req lease.Request) {
		steps = append(steps, Step{At: at, Request: req, Text: fmt.Sprint(req.Action)})
	}
	a := lease.Request{Action: lease.ActionAcquire, Proposed: r.ID, Owner: r.Owner, Duration: r.Duration}
	const most = 1 << 32 // grants of one test
	switch left := r.Remaining(Noon); {
	case r.Epoch > most:
		return nil, false
	case r.ID.IsZero():
	case r.State == lease.Available:
		step(0, a)
		step(0, lease.Request{Action: lease.ActionRelease, ID: r.ID})
	case r.State == lease.Leased && left == lease.Infinite:
		step(0, a)
	case r.State == lease.Leased:
		step(left-r.Duration, a)
	case r.State == lease.Breaking:
		step(0, a)
		step(0, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(left)})
	case r.State == lease.Broken:
		step(0, a)
		step(0, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
	default:
		step(-r.Duration, a)
	}
	return steps, true
}
