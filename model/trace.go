package model

import (
	"fmt"
	"strings"

	"github.com/fencedlease/lease"
)

// A Trace is a recorded run of one lease, as numbers that replay.pml can read. The first line of
// the text of a Trace contains three integers: the number of events, the field Parts and the field
// Margin. Each of the following lines is one event. An event consists of 17 integers, in the order
// of the fields of [Event].
type Trace struct {
	Parts  int     // the part of a duration that holders subtract for clock drift, in millionths
	Margin int     // the time that holders subtract in addition, in units
	Events []Event // the events, in the order in which they happened
}

// A Kind says what happened in an Event.
type Kind int

const (
	Load     Kind = iota + 1 // a server loads the record to decide a request
	Swap                     // the request was granted, and the store commits the new record
	Decide                   // a server decides a request without a change of the record
	Sent                     // a holder sends a request
	Answered                 // a holder gets the answer to a request
	Lost                     // OnLost is called
	Released                 // Release is called
	Sample                   // CheckAlive is called, as at every other event
)

var kindNames = [...]string{Load: "load", Swap: "swap", Decide: "decide", Sent: "sent", Answered: "answered", Lost: "lost", Released: "released", Sample: "sample"}

const (
	Never  = 1<<31 - 1 // the duration of an infinite lease, and the time left of a record without an end
	Absent = Never - 1 // the Period of a request without a period
)

// Unknown is the Code of an answer that does not tell the holder the outcome of its request.
const Unknown = -1

// An Event is one step of a run. All times are in units. IDs are numbered in the order in which
// they appear in the trace, and the number 0 stands for no ID. Epochs are relative to the first
// epoch of the trace.
type Event struct {
	Kind         Kind   // the kind of event
	Elapsed      int    // the time since the previous event, on the clock of the authority
	Slot         int    // the number of the server (in a Load, Swap or Decide) or of the holder
	Action       int    // a lease.Action
	ID           int    // the ID of the request
	Proposed     int    // the ID that the request proposes
	Duration     int    // the duration of the request
	Period       int    // the period of a break, or Absent
	Code         int    // the lease.Code of a refusal, 0 for a grant, or Unknown
	Record       Record // the record of the event
	MinRemaining int    // the MinRemaining of an answer
	Alive        int    // bit i is set if CheckAlive of holder i returns true
	Passed       int    // the time since the previous event, on the clock of the holders
}

// A Record is the record that an Event contains. The Kind of the Event says whether the record was
// loaded, committed, or returned in an answer.
type Record struct {
	State    int // a lease.State
	ID       int // the number of the ID
	Duration int // in units, or Never
	Left     int // the time left at the event, on the authority's clock, in units, or Never
	Epoch    int // the epoch relative to the first epoch of the trace
}

func (e Event) fields() []int {
	r := e.Record
	return []int{int(e.Kind), e.Elapsed, e.Slot, e.Action, e.ID, e.Proposed, e.Duration, e.Period, e.Code,
		r.State, r.ID, r.Duration, r.Left, r.Epoch, e.MinRemaining, e.Alive, e.Passed}
}

// String returns a readable text of the event.
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
		lease.State(e.Record.State), e.Record.ID, e.Record.Duration, e.Record.Left, e.Record.Epoch, e.MinRemaining, e.Alive)
}

// String returns the trace in the format that replay.pml reads.
func (t Trace) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, len(t.Events), t.Parts, t.Margin)
	for _, e := range t.Events {
		fmt.Fprintln(&b, strings.Trim(fmt.Sprint(e.fields()), "[]"))
	}
	return b.String()
}
