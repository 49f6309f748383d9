package model

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/simulate"
)

// A recorded holder tells the Recorder of its releases.
type recorded struct {
	simulate.Holder
	*Recorder
	number int
	name   string
}

func (h recorded) Release(ctx context.Context) error {
	defer h.Released(h.number, h.name)
	return h.Holder.Release(ctx)
}

func (h recorded) Close(ctx context.Context) error {
	defer h.Released(h.number, h.name)
	return h.Holder.Close(ctx)
}

// The faults that a trace cannot tell of, or that promise 2 excludes.
var beyond = map[string]bool{
	"store restarted, memory lost": true, // excluded
	"store clock forward":          true, // excluded
	"break at once":                true, // excluded, and sent by somebody who is not recorded
	"break with grace":             true, // the same somebody
	"store restarted, term anew":   true, // lengthens the lease, which no request does
	"hostile record":               true, // written by nobody's request
	"stale read":                   true, // shown by a store, and not what it holds
	"holder paused":                true, // its clock stops, and a trace has package time alone
	"store clock backward":         true, // the clock of the store, which is what a trace goes by
}

// TestReplaySimulator replays what the sessions of the simulator did under every fault that
// a trace can tell of.
//
// SPEC A5, H6, H9, H15, H19.
func TestReplaySimulator(t *testing.T) {
	const name, rate = "simulated", 0.001
	p, a := replayer(t, false), new(account)
	covered := 0
	for i, f := range simulate.Faults {
		if beyond[f.Name] {
			continue
		}
		covered++
		t.Run(f.Name, func(t *testing.T) {
			r := new(Recorder)
			senders, holders := 0, 0
			synctest.Test(t, func(t *testing.T) {
				report := simulate.Run(t, simulate.Config{
					Seed: *seed + uint64(i), For: 10 * time.Minute, Faults: []*simulate.Fault{f},
					Store: r.Store,
					Authority: func(a lease.Authority) lease.Authority {
						senders++
						return r.Authority(senders-1, a)
					},
					Holder: func(h simulate.Holder) simulate.Holder {
						r.Holder(holders, name, h)
						holders++
						return recorded{h, r, holders - 1, name}
					},
				})
				if report.Renewed == 0 {
					t.Errorf("nothing was held: %v", report)
				}
			})
			// Package time stands for clocks that are up to half of rate off.
			a.replay(t, p, r, rate/2, time.Millisecond)
		})
	}
	if covered != len(simulate.Faults)-len(beyond) || covered < 10 {
		t.Errorf("%d faults are covered", covered)
	}
	t.Logf("%d faults, %d traces, %d events, from seed %d", covered, a.traces, a.events, *seed)
}
