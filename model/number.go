package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Unit is the resolution of traces. A finite duration in a trace is at most 35 minutes.
const Unit = time.Microsecond

// ErrOtherDialect says that a trace has a request of a version before 2012-02-12, which the model
// does not know.
var ErrOtherDialect = errors.New("model: a request in the old dialect")

// ErrUnit says that a duration is not a whole number of units, or too many of them.
var ErrUnit = errors.New("model: what a trace cannot tell")

// Names returns the names of the leases that have records.
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

// Trace returns what was recorded of one lease. The arguments are those of the holders: rate is the
// e of U = sent + D(1-e)/(1+e) - margin. The error is [ErrOtherDialect] or [ErrUnit].
func (r *Recorder) Trace(name string, rate float64, margin time.Duration) (Trace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := numbering{ids: map[lease.ID]int{{}: 0}}
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

// A numbering turns recorded events into numbers, and keeps what it needs to know for that.
type numbering struct {
	ids    map[lease.ID]int
	slots  [8]*event // the loads under way, by server
	epoch  uint64    // of the first record
	now    time.Time // the authority's, at the event before
	at     time.Time // the holders'
	begun  bool
	failed error
}

func (n *numbering) number(e *event) (Event, error) {
	v := Event{Kind: e.kind, Slot: e.holder, Alive: e.alive, Code: e.code, Passed: n.since(&n.at, e.at)}
	if e.call != nil {
		req := e.call.req
		v.Action = int(req.Action)
		v.ID, v.Proposed = n.id(req.ID), n.id(req.Proposed)
		v.Duration = n.exactly(req.Duration)
		v.Period = Absent
		if p, ok := req.Period.Get(); ok {
			v.Period = n.exactly(p)
		}
	}
	switch e.kind {
	case Load:
		v.Elapsed = n.since(&n.now, e.snap.Now)
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
		v.Elapsed = n.since(&n.now, e.snap.Now)
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
				v.Record.Left = n.span(max(0, u.Truncate(Unit).Sub(n.now))) // by now
			}
		}
		v.Sure = n.span(e.result.MinRemaining)
	case Lost:
		v.Record.Epoch = int(e.epoch - n.epoch)
	}
	return v, n.failed
}

func (n *numbering) id(id lease.ID) int {
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

// exactly is span for what the machine calculates with.
func (n *numbering) exactly(d time.Duration) int {
	if d != lease.Infinite && d%Unit != 0 {
		n.failed = fmt.Errorf("%w: %v", ErrUnit, d)
	}
	return n.span(d)
}

func (n *numbering) span(d time.Duration) int {
	if d == lease.Infinite {
		return Never
	}
	if d/Unit >= Absent {
		n.failed = fmt.Errorf("%w: %v", ErrUnit, d)
		return 0
	}
	return int(d / Unit)
}

// since moves a clock on to t, and returns the units that have passed.
func (n *numbering) since(clock *time.Time, t time.Time) int {
	t = t.Round(0).Truncate(Unit)
	if clock.IsZero() {
		*clock = t
	}
	passed := t.Sub(*clock)
	*clock = t
	return n.span(passed)
}

func (n *numbering) record(r lease.Record, now time.Time) Record {
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

func (n *numbering) free() int {
	for i, l := range n.slots {
		if l == nil {
			return i
		}
	}
	n.failed = errors.New("model: more than 8 servers at once")
	return 0
}
