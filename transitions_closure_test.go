package lease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A kind is a record without the parts that cannot affect a decision: the values of its ID and owner, the
// absolute time, and the number of grants.
type kind struct {
	state    lease.State
	known    bool          // whether the record has an ID
	duration time.Duration // in whole seconds, or Infinite
	left     time.Duration // the time until Until; 0 if Until is not set
}

func (k kind) record() lease.Record {
	r := lease.Record{State: k.state, Duration: k.duration, Epoch: 7}
	if k.known {
		r.ID, r.Owner = ids["A"], "one"
	}
	if k.left != 0 {
		r.Until = noon.Add(k.left)
	}
	return r
}

func kindOf(r lease.Record, now time.Time) kind {
	k := kind{r.State, r.ID != lease.ID{}, r.Duration, 0}
	if !r.Until.IsZero() {
		k.left = r.Until.Sub(now)
	}
	return k
}

// soon returns the time until the next instant to test: each whole second before the end, a nanosecond
// before it, and a nanosecond after it.
func (k kind) soon() time.Duration {
	switch k.left % time.Second {
	case 0, 1:
		return 1
	}
	return time.Second - 2
}

// azure returns every request that a client can send to the Blob service, except that three IDs stand for
// all: A is the last ID of the lease, and B and C are others. Arguments that a dialect ignores have few
// values.
func azure() []lease.Request {
	var all []lease.Request
	for _, v := range []lease.Version{0, lease.Version20110818} {
		durations, periods := []time.Duration{0, 15 * time.Second, lease.Infinite}, []time.Duration{-1, 0, time.Second}
		if v == 0 {
			durations, periods = []time.Duration{-1, 0, lease.Infinite}, []time.Duration{-1}
			for s := time.Duration(0); s <= 60; s++ {
				periods = append(periods, s*time.Second)
				if s >= 15 {
					durations = append(durations, s*time.Second)
				}
			}
		}
		for _, id := range []lease.ID{{}, ids["A"], ids["B"]} {
			for _, a := range []lease.Action{lease.ActionRenew, lease.ActionRelease, lease.ActionRead, lease.ActionWrite} {
				all = append(all, lease.Request{Version: v, Action: a, ID: id})
			}
			for _, d := range durations {
				all = append(all, lease.Request{Version: v, Action: lease.ActionAcquire, Proposed: id, Owner: "two", Duration: d})
			}
			for _, p := range []lease.ID{{}, ids["A"], ids["B"], ids["C"]} {
				all = append(all, lease.Request{Version: v, Action: lease.ActionChange, ID: id, Proposed: p})
			}
		}
		all = append(all, lease.Request{Version: v, Action: lease.ActionBreak})
		for _, p := range periods {
			all = append(all, lease.Request{Version: v, Action: lease.ActionBreak, Period: lease.Grace(p)})
		}
	}
	return all
}

// Step agrees with the reference machine, and every record is valid, for
//
//   - every record that can be reached with the durations of the Blob service, 15 to 60 seconds or
//     infinite, and its break periods, 0 to 60 seconds, in whole seconds;
//   - every request in both dialects;
//   - every whole second before the end of the lease, and the instants one nanosecond before and after it.
//
// TestSteps tries requests whose record is as a store keeps it, without a call of At.
//
// SPEC M1, M2, M4, M5, M6, M7, M8, M9, M10, M11, M12, M13, M16, M17, M18, M19, R1.
func TestClosure(t *testing.T) {
	const states, transitions = 10_672, 2_902_642
	requests := azure()
	seen := map[kind]bool{{}: true}
	waiting := []kind{{}}
	steps := 0
	reach := func(k kind) {
		if !seen[k] {
			seen[k] = true
			waiting = append(waiting, k)
		}
	}
	for len(waiting) > 0 && !t.Failed() {
		k := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		r := k.record()
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		if k.left != 0 {
			later := noon.Add(k.soon())
			reach(kindOf(r.At(later), later))
			steps++
		}
		from := referenceOf(r, -1)
		for i := range requests {
			d := from
			code := d.do(requests[i], 0)
			next, err := lease.Step(r, requests[i], noon)
			if !isExactly(err, code) || next != d.record(0) {
				t.Fatalf("%+v\n%+v\n got %+v, %v\nwant %+v, %v", r, requests[i], next, err, d.record(0), code)
			}
			if steps++; err == nil { // a refusal returns only r
				reach(kindOf(next, noon))
			}
		}
	}
	t.Logf("%d states, %d transitions, %d requests", len(seen), steps, len(requests))
	if len(seen) != states || steps != transitions {
		t.Errorf("%d states and %d transitions, want %d and %d", len(seen), steps, states, transitions)
	}
}
