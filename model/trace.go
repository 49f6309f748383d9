package model

import (
	"fmt"
	"strings"

	"github.com/fencedlease/lease"
)

// A Trace is what an authority and its holders did with one lease, in numbers that replay.pml can
// read. Its text begins with a line that has the number of events, Parts and Margin. Each event
// follows on a line of 17 integers, in the order of the fields of [Event].
type Trace struct {
	Parts  int     // of a duration, in millionths, that holders take off for the drift of clocks
	Margin int     // and, in units, besides
	Events []Event // in the order in which they happened
}

// A Kind is a kind of Event.
type Kind int

const (
	Load     Kind = iota + 1 // a server loads the record and steps its request
	Swap                     // it was granted, and the store takes the new record
	Decide                   // refused, or granted without a change, by a load
	Sent                     // a holder sends a request
	Answered                 // a holder has its answer
	Lost                     // OnLost is called
	Released                 // Release is called
	Sample                   // CheckAlive is called, as at every other event
)

var kindNames = [...]string{Load: "load", Swap: "swap", Decide: "decide", Sent: "sent", Answered: "answered", Lost: "lost", Released: "released", Sample: "sample"}

const (
	Never  = 1<<31 - 1 // the time left of what does not end by itself, and the duration of an infinite lease
	Absent = Never - 1 // the period of a break without one
)

// Unknown is the Code of an answer from which the outcome is not known.
const Unknown = -1

// An Event is one step of a run. Times are in units. IDs are numbered in the order in which they
// appear, and 0 stands for none. Epochs are counted from the first one of the trace.
type Event struct {
	Kind     Kind   // what happened
	Elapsed  int    // on the authority's clock, since the event before
	Slot     int    // the server of Load and Swap; the holder of the last five kinds
	Action   int    // a lease.Action
	ID       int    // of the request
	Proposed int    // the ID that the request proposes
	Duration int    // that the request asks for
	Period   int    // of a break
	Code     int    // a lease.Code that is a refusal, 0 for granted, or Unknown
	Record   Record // see there
	Sure     int    // the MinRemaining of an answer
	Alive    int    // a bit for every holder whose CheckAlive is true
	Passed   int    // on the holders' clock, since the event before
}

// A Record is the record that an Event shows. It is the one that was loaded, that was swapped in,
// or that came with the answer.
type Record struct {
	State    int // a lease.State
	ID       int // the number of the ID
	Duration int // in units, or Never
	Left     int // the time left at the event, on the authority's clock, in units, or Never
	Epoch    int // counted from the first of the trace
}

func (e Event) fields() []int {
	r := e.Record
	return []int{int(e.Kind), e.Elapsed, e.Slot, e.Action, e.ID, e.Proposed, e.Duration, e.Period, e.Code,
		r.State, r.ID, r.Duration, r.Left, r.Epoch, e.Sure, e.Alive, e.Passed}
}

// String returns the event in words.
func (e Event) String() string {
	code := "granted"
	switch {
	case e.Code == Unknown:
		code = "unknown"
	case e.Code > 0:
		code = lease.Code(e.Code).String()
	}
	kind := fmt.Sprint(int(e.Kind))
	if e.Kind > 0 && int(e.Kind) < len(kindNames) {
		kind = kindNames[e.Kind]
	}
	return fmt.Sprintf("+%d/+%d %s %d: %v id=%d proposed=%d duration=%d period=%d, %s; %v id=%d duration=%d left=%d epoch=%d; sure=%d alive=%b",
		e.Elapsed, e.Passed, kind, e.Slot, lease.Action(e.Action), e.ID, e.Proposed, e.Duration, e.Period, code,
		lease.State(e.Record.State), e.Record.ID, e.Record.Duration, e.Record.Left, e.Record.Epoch, e.Sure, e.Alive)
}

// String returns the trace as the text that replay.pml reads.
func (t Trace) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, len(t.Events), t.Parts, t.Margin)
	for _, e := range t.Events {
		fmt.Fprintln(&b, strings.Trim(fmt.Sprint(e.fields()), "[]"))
	}
	return b.String()
}
