package blobtest

import (
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

var allActions = append(slices.Clone(operations), uses...)

// SPEC W1: every refusal of the state machine has a row of its own, and every row but the last can be
// reached. The last is for codes that the state machine never returns.
func TestOutcomesFitTheMachine(t *testing.T) {
	now := time.Date(2012, 1, 26, 23, 30, 18, 0, time.UTC)
	a, b, c := lease.ID{1}, lease.ID{2}, lease.ID{3}
	until := now.Add(time.Minute)
	records := []lease.Record{
		{},
		{Epoch: 7},
		{State: lease.Available, ID: a, Duration: time.Minute, Epoch: 7},
		{State: lease.Leased, ID: a, Duration: time.Minute, Until: until, Epoch: 7},
		{State: lease.Leased, ID: a, Duration: lease.Infinite, Epoch: 7},
		{State: lease.Expired, ID: a, Duration: time.Minute, Epoch: 7},
		{State: lease.Breaking, ID: a, Duration: time.Minute, Until: until, Epoch: 7},
		{State: lease.Broken, ID: a, Duration: time.Minute, Epoch: 7},
	}
	reached := map[string]bool{}
	ids := []lease.ID{{}, a, b, c}
	for _, r := range records {
		for _, action := range append(slices.Clone(allActions), 0) {
			for _, id := range ids {
				for _, proposed := range ids {
					for _, d := range []time.Duration{0, time.Minute} {
						for _, p := range []lease.Period{{}, lease.Grace(-1), lease.Grace(time.Second)} {
							for _, v := range []lease.Version{1, lease.Version20110818, lease.Version20120212} {
								req := lease.Request{Action: action, ID: id, Proposed: proposed, Duration: d, Period: p, Version: v}
								_, err := lease.Step(r, req, now)
								if err == nil {
									continue
								}
								o := outcomeOf(outcomes, action, r.State, lease.CodeOf(err))
								if o.name == errInternal.code {
									t.Fatalf("%v on %v: %v has no row", req, r, err)
								}
								reached[key(o)] = true
							}
						}
					}
				}
			}
		}
	}
	for _, o := range outcomes[:len(outcomes)-1] {
		// Authorities check names and owners; Step does not.
		if !reached[key(o)] && o.code != lease.ErrName && o.code != lease.ErrOwner {
			t.Errorf("row %+v is never the answer", o)
		}
	}
}

func key(o outcome) string { return o.name + o.text + o.header }
