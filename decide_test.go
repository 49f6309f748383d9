package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// limits draws random limits. Each field may be zero.
func limits() *rapid.Generator[lease.Limits] {
	return rapid.Custom(func(t *rapid.T) lease.Limits {
		some := rapid.SampledFrom([]time.Duration{0, time.Nanosecond, 10 * time.Second, time.Minute})
		l := lease.Limits{MinDuration: some.Draw(t, "min"), MaxDuration: some.Draw(t, "max"), MaxPeriod: some.Draw(t, "period")}
		if l.MaxDuration > 0 {
			l.MinDuration = min(l.MinDuration, l.MaxDuration)
		}
		return l
	})
}

// bounded returns the record r at the time now, shortened to the limits, and whether this moved its end.
func bounded(r lease.Record, l lease.Limits, now time.Time) (lease.Record, bool) {
	r = r.At(now)
	infinite, was := r.Duration == lease.Infinite, r.Until
	if !infinite && l.MaxDuration > 0 && r.Duration > l.MaxDuration {
		r.Duration = l.MaxDuration
	}
	most := l.MaxDuration
	if infinite {
		most = l.MaxPeriod
	}
	if most > 0 && r.Remaining(now) != lease.Infinite && r.Remaining(now) > most {
		r.Until = now.Add(most)
	}
	return r, !r.Until.Equal(was)
}

// SPEC A7, M18: Decide checks the arguments, lets time pass, applies the limits and calls Step, in this
// order. The record must be written in three cases: it changes, a renewal is granted, or a request other
// than a read finds a record that claims too much time.
func TestDecide(t *testing.T) {
	granted, refused, bad, cut := 0, 0, 0, 0
	property := func(t *rapid.T) {
		r, req, l := records().Draw(t, "record"), requests().Draw(t, "request"), limits().Draw(t, "limits")
		next, write, err := lease.Decide(r, req, l, noon)
		was, claims := bounded(r, l, noon)
		if claims {
			cut++
		}
		var field *lease.FieldError
		if check := l.Check(req); check != nil {
			bad++
			if !errors.As(err, &field) || *field != *check.(*lease.FieldError) || write || next != was {
				t.Fatalf("bad argument %v: %+v, %v, %v", check, next, write, err)
			}
			return
		}
		want, code := lease.Step(was, req, noon)
		if next != want || err != code {
			t.Fatalf("got  %+v, %v\nwant %+v, %v", next, err, want, code)
		}
		if err == nil {
			granted++
		} else {
			refused++
		}
		must := next != was || err == nil && req.Action == lease.ActionRenew || claims
		if req.Action == lease.ActionRead {
			must = false
		}
		if write != must {
			t.Fatalf("%v of %+v gives %+v, %v; write is %v", req.Action, r, next, err, write)
		}
	}
	// One call of rapid.Check draws a hundred cases, which do not always include all four outcomes.
	for range 50 {
		rapid.Check(t, property)
		if t.Failed() || min(granted, refused, bad, cut) > 0 {
			return
		}
	}
	t.Errorf("%d granted, %d refused, %d with a bad argument, %d cut", granted, refused, bad, cut)
}

func TestDecideAllocatesNothing(t *testing.T) {
	r := lease.Record{State: lease.Leased, ID: ids["A"], Duration: time.Minute, Until: noon.Add(time.Second), Epoch: 1}
	for _, req := range []lease.Request{
		{Action: lease.ActionRenew, ID: ids["A"]}, {Action: lease.ActionRenew, ID: ids["B"]}, {Action: lease.ActionRead}, {Action: lease.ActionBreak},
		{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: time.Minute}, {Action: lease.ActionRelease, ID: ids["A"]},
	} {
		if n := testing.AllocsPerRun(100, func() { _, _, _ = lease.Decide(r, req, vectors.AzureLimits, noon) }); n != 0 {
			t.Errorf("%v: %v allocations", req.Action, n)
		}
	}
}

// A failingSwap is a store whose swaps fail.
type failingSwap struct{ *fakeStore }

func (failingSwap) Limits() lease.Limits { return lease.Limits{MaxDuration: time.Minute} }

func (failingSwap) Swap(context.Context, string, lease.Snapshot, lease.Record) (lease.Snapshot, error) {
	return lease.Snapshot{}, errors.New("cannot write")
}

// If a record claims too much time and its shortened form cannot be written, a refusal is still valid. The
// outcome of a grant is then unknown, because its answer would show an end that is not stored.
func TestClaimThatCannotBeWritten(t *testing.T) {
	s := newStore(lease.Record{State: lease.Leased, ID: ids["A"], Duration: time.Hour, Until: noon.Add(time.Hour), Epoch: 1})
	a := lease.NewAuthority(failingSwap{s})
	for action, c := range map[string]struct {
		req  lease.Request
		want string
	}{
		"refused": {lease.Request{Action: lease.ActionRenew, ID: ids["B"]}, "the lease ID is not the one in force"},
		"granted": {lease.Request{Action: lease.ActionWrite, ID: ids["A"]}, "cannot write"},
		"read":    {lease.Request{Action: lease.ActionRead}, ""},
	} {
		_, err := a.Do(t.Context(), "a", c.req)
		if got := errors.Unwrap(err); got == nil && c.want != "" || got != nil && got.Error() != c.want {
			t.Errorf("%s: %v, want %q", action, err, c.want)
		}
	}
}
