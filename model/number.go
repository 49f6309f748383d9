package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Unit is the resolution of traces. A finite duration in a trace is at most 35 minutes.
const Unit = time.Microsecond

// ErrOtherDialect reports that a recorded request has a protocol version before 2012-02-12. The
// model does not support such versions.
var ErrOtherDialect = errors.New("model: a request in the old dialect")

// ErrUnit is returned if a trace cannot represent a duration. The Duration and the Period of a
// request must be multiples of [Unit]. All other times and durations are truncated to multiples of
// Unit. Every finite duration must be shorter than [Absent] units.
var ErrUnit = errors.New("model: a duration that a trace cannot represent")

// Names returns the names of all leases for which an event was recorded.
func (r *Recorder) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	seen := make(map[string]bool)
	for _, e := range r.events {
		if !seen[e.name] {
			seen[e.name] = true
			names = append(names, e.name)
		}
	}
	return names
}

// Trace returns the recorded events of one lease. Trace leaves out a load if no decision and no
// swap was based on the load. The parameters named rate and margin hold the options MaxClockDrift
// and Margin of the holders. If the authority grants a lease of the duration D for a request that
// was sent at the time T, the holder can use the lease until T + D(1-rate)/(1+rate) - margin. Trace
// returns an error, such as [ErrOtherDialect] or [ErrUnit], if a trace cannot represent the events.
// Trace also returns an error if a recorded swap is based on a load that was not recorded.
func (r *Recorder) Trace(name string, rate float64, margin time.Duration) (Trace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := eventConverter{ids: map[lease.ID]int{{}: 0}}
	t := Trace{Parts: int(2 * rate / (1 + rate) * 1e6), Margin: int(margin / Unit)}
	for _, e := range r.events {
		if e.name != name || e.kind == Load && e.swap == nil {
			continue
		}
		if e.call != nil && e.call.req.Version != 0 && e.call.req.Version < lease.Version20120212 {
			return Trace{}, ErrOtherDialect
		}
		v, err := n.number(e)
		if err != nil {
			return Trace{}, err
		}
		t.Events = append(t.Events, v)
	}
	return t, nil
}

// An eventConverter converts the recorded events of one lease to values of the type Event. An
// eventConverter holds the state of the conversion.
type eventConverter struct {
	ids    map[lease.ID]int
	slots  [8]*event // the loads whose swap has not been seen yet, by server
	epoch  uint64    // the epoch of the first record
	now    time.Time // the time of the authority at the previous event
	at     time.Time // the time of the holders at the previous event
	begun  bool
	failed error
}

func (n *eventConverter) number(e *event) (Event, error) {
	v := Event{Kind: e.kind, Slot: e.holder, Alive: e.alive, Code: e.code, Passed: n.setClock(&n.at, e.at)}
	if e.call != nil {
		req := e.call.req
		v.Action = int(req.Action)
		v.ID, v.Proposed = n.id(req.ID), n.id(req.Proposed)
		v.Duration = n.exactUnits(req.Duration)
		v.Period = Absent
		if p, ok := req.Period.Get(); ok {
			v.Period = n.exactUnits(p)
		}
	}
	switch e.kind {
	case Load:
		v.Elapsed = n.setClock(&n.now, e.snap.Now)
		v.Record = n.record(e.snap.Record, e.snap.Now)
		v.Slot = n.free()
		if e.swap == e {
			v.Kind = Decide
		} else if n.failed == nil {
			n.slots[v.Slot] = e
		}
	case Swap:
		if e.load == nil {
			return v, fmt.Errorf("model: %q was swapped by a request that was not recorded: %v", e.name, e.snap.Record)
		}
		v.Elapsed = n.setClock(&n.now, e.snap.Now)
		v.Record = n.record(e.snap.Record, e.snap.Now)
		for i, l := range n.slots {
			if l == e.load {
				v.Slot, n.slots[i] = i, nil
			}
		}
	case Answered:
		if !e.result.Now.IsZero() {
			v.Record = n.record(e.result.Record, e.result.Now)
			if u := e.result.Record.Until; v.Record.Left != Never {
				v.Record.Left = n.span(max(0, u.Truncate(Unit).Sub(n.now))) // at the last known time of the authority
			}
		}
		v.MinRemaining = n.span(e.result.MinRemaining)
	case Lost:
		v.Record.Epoch = int(e.epoch - n.epoch)
	}
	return v, n.failed
}

func (n *eventConverter) id(id lease.ID) int {
	i, ok := n.ids[id]
	if !ok {
		i = len(n.ids)
		n.ids[id] = i
	}
	if i > 255 {
		n.failed = errors.New("model: more than 255 IDs in one trace")
	}
	return i
}

// exactUnits converts d to units. If d is not a multiple of Unit, exactUnits sets n.failed. The
// method span also converts a duration, but drops a fraction of a unit without an error. Use
// exactUnits for the durations with which machine.pml computes.
func (n *eventConverter) exactUnits(d time.Duration) int {
	if d != lease.Infinite && d%Unit != 0 {
		n.failed = fmt.Errorf("%w: %v", ErrUnit, d)
	}
	return n.span(d)
}

func (n *eventConverter) span(d time.Duration) int {
	if d == lease.Infinite {
		return Never
	}
	if d/Unit >= Absent {
		n.failed = fmt.Errorf("%w: %v", ErrUnit, d)
		return 0
	}
	return int(d / Unit)
}

// setClock sets *clock to t, truncated to units. setClock returns the number of units by which
// *clock has advanced. If *clock was the zero time before the call, setClock returns 0.
func (n *eventConverter) setClock(clock *time.Time, t time.Time) int {
	t = t.Round(0).Truncate(Unit)
	if clock.IsZero() {
		*clock = t
	}
	passed := t.Sub(*clock)
	*clock = t
	return n.span(passed)
}

func (n *eventConverter) record(r lease.Record, now time.Time) Record {
	if !n.begun {
		n.begun, n.epoch = true, r.Epoch
	}
	r = r.At(now)
	v := Record{int(r.State), n.id(r.ID), n.span(r.Duration), Never, int(r.Epoch - n.epoch)}
	if !r.Until.IsZero() {
		v.Left = n.span(r.Until.Truncate(Unit).Sub(now.Truncate(Unit)))
	}
	return v
}

func (n *eventConverter) free() int {
	for i, l := range n.slots {
		if l == nil {
			return i
		}
	}
	n.failed = errors.New("model: more than 8 servers at once")
	return 0
}
