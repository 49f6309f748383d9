package session

import (
	"fmt"
	"testing"

	"github.com/fencedlease/lease"
)

// An ID is retired with its incarnation. SPEC H6.
func TestEndRetiresTheID(t *testing.T) {
	h := holding(t, nil)
	if b := h.end(); b == nil || b.id != own || h.held != nil || !h.proposal.IsZero() {
		t.Errorf("ended %+v, and is %+v", b, h)
	}
	h.proposal, h.doubtful = other, true
	if b := h.end(); b != nil || h.proposal != other || !h.doubtful {
		t.Errorf("nothing was held, but ended %+v, and is %+v", b, h)
	}
	if h.retire(); !h.proposal.IsZero() || h.doubtful {
		t.Errorf("retired, but %+v", h)
	}
}

// Debts are settled newest first; one that was waived or given away is not due, until a
// refusal names it. SPEC H7.
func TestDebts(t *testing.T) {
	h := newHolder(nil)
	if h.due() != nil || h.owes(owed) != nil {
		t.Fatal("owes from the start")
	}
	h.owe(given, false)
	h.owe(owed, false)
	h.owe(waived, true)
	for _, step := range []struct {
		name string
		do   func()
		due  lease.ID
	}{
		{"the newest first", func() {}, waived},
		{"not in force, but may come to be", func() { h.discharge(waived) }, owed},
		{"discharged", func() { h.discharge(owed) }, given},
		{"being handed over", func() { h.handing = given }, lease.ID{}},
		{"waived, but named", func() { h.recall(waived) }, waived},
		{"still being handed over", func() { h.discharge(waived) }, lease.ID{}},
		{"handed over, but named", func() { h.recall(given) }, given},
		{"unknown", func() { h.discharge(other) }, given},
		{"all settled", func() { h.discharge(given) }, lease.ID{}},
	} {
		step.do()
		got := lease.ID{}
		if d := h.due(); d != nil {
			got = d.id
		}
		if got != step.due {
			t.Errorf("%s: due is %v, want %v", step.name, got, step.due)
		}
	}
	if h.handing != (lease.ID{}) || len(h.unsettled) != 1 || h.owes(waived) == nil {
		t.Errorf("left: %+v", h)
	}
}

// An ID that is owed again is owed once, is due, and is as doubtful as it ever was. SPEC H7.
func TestOwedAgain(t *testing.T) {
	for _, was := range []bool{false, true} {
		for _, is := range []bool{false, true} {
			h := newHolder(nil)
			h.remember(debt{id: owed, doubtful: was, waived: true})
			h.owe(owed, is)
			if want := (debt{id: owed, doubtful: was || is}); len(h.unsettled) != 1 || h.unsettled[0] != want {
				t.Errorf("doubtful %v, then %v: %+v", was, is, h.unsettled)
			}
		}
	}
}

// What a Session remembers is bounded, and the oldest goes first.
func TestDebtsAreBounded(t *testing.T) {
	h := newHolder(nil)
	id := func(i int) lease.ID { return lease.ID{1, byte(i >> 8), byte(i)} }
	for i := range mostUnsettled + 10 {
		h.owe(id(i), false)
	}
	if len(h.unsettled) != mostUnsettled || h.owes(id(9)) != nil || h.owes(id(10)) == nil || h.due().id != id(mostUnsettled+9) {
		t.Errorf("%d are remembered", len(h.unsettled))
	}
}

// What is waived is forgotten before what is due. SPEC H7.
func TestWhatIsWaivedIsForgottenFirst(t *testing.T) {
	h := newHolder(nil)
	h.owe(owed, false)
	for i := range mostUnsettled + 10 {
		h.proposal, h.shown = lease.ID{1, byte(i >> 8), byte(i)}, true
		h.retire()
	}
	if d := h.due(); len(h.unsettled) != mostUnsettled || d == nil || d.id != owed || h.unsettled[1].id != (lease.ID{1, 0, 11}) {
		t.Errorf("%d are remembered: %v, ...", len(h.unsettled), h.unsettled[:2])
	}
}

// If all that is remembered is waived, the oldest makes room for the newest. SPEC H7.
func TestOldestOfWhatIsWaivedIsForgotten(t *testing.T) {
	h := newHolder(nil)
	id := func(i int) lease.ID { return lease.ID{1, byte(i >> 8), byte(i)} }
	for i := range mostUnsettled + 1 {
		h.proposal, h.shown = id(i), true
		h.retire()
	}
	if len(h.unsettled) != mostUnsettled || h.owes(id(0)) != nil || h.owes(id(mostUnsettled)) == nil {
		t.Errorf("%d are remembered: %v, ...", len(h.unsettled), h.unsettled[0])
	}
}

// A proposal that is given up is owed once, as doubtful as it was, and stays one that was told.
// SPEC H6, H7.
func TestForgo(t *testing.T) {
	for _, was := range []debt{{id: own, doubtful: true}, {id: own, shown: true}, {id: own, doubtful: true, shown: true}} {
		s := &Session{holder: *newHolder(nil)}
		s.doubtful, s.shown = was.doubtful, was.shown
		if s.forgo(); len(s.unsettled) != 1 || s.unsettled[0] != was || !s.proposal.IsZero() || s.doubtful || s.shown {
			t.Errorf("%+v: owed are %+v; the proposal is %v", was, s.unsettled, s.proposal)
		}
	}
}

// If all that is remembered is due, what is waived is not worth any of it. SPEC H7.
func TestWhatIsWaivedDrivesOutNothingDue(t *testing.T) {
	h := newHolder(nil)
	for i := range mostUnsettled {
		h.owe(lease.ID{9, byte(i >> 8), byte(i)}, false)
	}
	h.proposal, h.shown = own, true
	h.retire()
	if len(h.unsettled) != mostUnsettled || h.unsettled[0].id != (lease.ID{9}) || h.owes(own) != nil {
		t.Errorf("%d are remembered: %v, ...", len(h.unsettled), h.unsettled[0])
	}
}

// Only a code says that nothing has changed. SPEC A1.
func TestCertain(t *testing.T) {
	for _, err := range []error{nil, errNet, lease.ErrConflict, lease.ErrCorrupt} {
		if certain(err) {
			t.Errorf("%v is certain", err)
		}
	}
	for _, err := range []error{lease.ErrHeldByOther, lease.ErrDuration, fmt.Errorf("wrapped: %w", lease.ErrIDMismatch)} {
		if !certain(err) {
			t.Errorf("%v is not certain", err)
		}
	}
}
