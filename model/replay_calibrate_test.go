package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fencedlease/lease"
)

// A corruption is a kind of false trace. The function lie changes event i to something that cannot
// have happened. If the corruption does not apply to event i, lie returns nil.
type corruption struct {
	name string
	lie  func(events []Event, i int) []Event
}

// when returns the function lie of a corruption of a single event. If the function kind returns
// true for event i, the returned function calls the parameter lie with event i. If kind returns
// false, the returned function returns nil.
func when(kind func(Event) bool, lie func(*Event)) func([]Event, int) []Event {
	return func(events []Event, i int) []Event {
		if !kind(events[i]) {
			return nil
		}
		lie(&events[i])
		return events
	}
}

// latest returns the record of the last grant whose answer the holder got.
func latest(events []Event, holder int) Record {
	for _, e := range slices.Backward(events) {
		if granted(e) && e.Slot == holder {
			return e.Record
		}
	}
	return Record{}
}

func swapped(e Event) bool { return e.Kind == Swap }

func swappedBy(a lease.Action) func(Event) bool {
	return func(e Event) bool { return e.Kind == Swap && e.Action == int(a) }
}

func ends(e Event) bool { return e.Kind == Swap && e.Record.Left != Never && e.Record.Left > 2000 }

func decided(code lease.Code) func(Event) bool {
	return func(e Event) bool { return e.Kind == Decide && e.Code == int(code) }
}

func granted(e Event) bool { return e.Kind == Answered && e.Code == 0 }

var corruptions = []corruption{
	{"granted, and was refused", when(decided(lease.ErrHeldByOther), func(e *Event) { e.Code = 0 })},
	{"refused for another reason", when(decided(lease.ErrIDMismatch), func(e *Event) { e.Code = int(lease.ErrNotPresent) })},
	{"refused, and was granted", when(decided(0), func(e *Event) { e.Code = int(lease.ErrIDMismatch) })},
	{"another ID", when(swappedBy(lease.ActionAcquire), func(e *Event) { e.Record.ID++ })},
	{"an older token", when(swappedBy(lease.ActionAcquire), func(e *Event) { e.Record.Epoch-- })},
	{"a token that is not newer after a change", when(swappedBy(lease.ActionChange), func(e *Event) { e.Record.Epoch-- })},
	{"a renewal with a newer token", when(swappedBy(lease.ActionRenew), func(e *Event) { e.Record.Epoch++ })},
	{"a longer lease", when(ends, func(e *Event) { e.Record.Left += 1000 })},
	{"a shorter lease", when(ends, func(e *Event) { e.Record.Left -= 1000 })},
	{"another duration", when(swapped, func(e *Event) { e.Record.Duration -= 1000 })},
	{"a release that frees nothing", when(swappedBy(lease.ActionRelease), func(e *Event) { e.Record.State = int(lease.Leased) })},
	{"a break that does nothing", when(swappedBy(lease.ActionBreak), func(e *Event) { e.Record.State = int(lease.Leased) })},
	{"the passing of time", when(func(e Event) bool { return e.Kind == Load && e.Record.Left != Never && e.Record.Left > 2000 }, func(e *Event) { e.Elapsed += 1000 })},
	{"a swap that is forgotten", func(events []Event, i int) []Event {
		if events[i].Kind != Swap || i+1 == len(events) || !slices.ContainsFunc(events[i+1:], func(e Event) bool { return e.Kind == Load || e.Kind == Decide }) {
			return nil
		}
		return slices.Delete(events, i, i+1)
	}},
	{"a swap that is made twice", func(events []Event, i int) []Event {
		if events[i].Kind != Swap {
			return nil
		}
		twice := events[i]
		twice.Elapsed, twice.Passed = 0, 0
		return slices.Insert(events, i+1, twice)
	}},
	{"a swap without a load", func(events []Event, i int) []Event {
		if events[i].Kind != Load {
			return nil
		}
		return slices.Delete(events, i, i+1)
	}},
	{"more than was granted is certain", when(granted, func(e *Event) { e.MinRemaining = e.Record.Duration + 1000 })},
	{"believed without being asked for", func(events []Event, i int) []Event {
		e := events[i]
		if !granted(e) || e.Action != int(lease.ActionAcquire) || i+1 == len(events) || events[i+1].Alive>>e.Slot&1 == 0 {
			return nil
		}
		for j := i; j >= 0; j-- {
			if events[j].Kind == Sent && events[j].Slot == e.Slot {
				events[j].Kind = Sample
				return events
			}
		}
		return nil
	}},
	{"belief of one who holds nothing", when(func(Event) bool { return true }, func(e *Event) { e.Alive |= 1 << 3 })},
	{"belief after the loss", func(events []Event, i int) []Event {
		e := &events[i]
		if e.Kind != Lost || latest(events[:i], e.Slot).Epoch != e.Record.Epoch {
			return nil
		}
		e.Alive |= 1 << e.Slot
		return events
	}},
	{"belief after the release", when(func(e Event) bool { return e.Kind == Released }, func(e *Event) { e.Alive |= 1 << e.Slot })},
	{"belief that does not end", when(func(e Event) bool { return e.Alive != 0 && e.Kind == Sample }, func(e *Event) { e.Passed += int(term / Unit) })},
	{"a loss told twice", func(events []Event, i int) []Event {
		if events[i].Kind != Lost {
			return nil
		}
		twice := events[i]
		twice.Elapsed, twice.Passed = 0, 0
		return slices.Insert(events, i+1, twice)
	}},
	{"a loss after the release", func(events []Event, i int) []Event {
		if events[i].Kind != Released {
			return nil
		}
		last := latest(events[:i], events[i].Slot)
		if last.Epoch == 0 {
			return nil
		}
		return slices.Insert(events, i+1, Event{Kind: Lost, Slot: events[i].Slot, Record: Record{Epoch: last.Epoch}})
	}},
	{"a loss of what was never held", when(func(e Event) bool { return e.Kind == Lost }, func(e *Event) { e.Record.Epoch += 1000 })},
}

// TestReplayRejects applies each corruption to the traces of correct runs, at random events. The
// model must reject each corrupted trace.
func TestReplayRejects(t *testing.T) {
	places := 3 // the number of events of each run to which a corruption is applied
	if testing.Short() {
		places = 1
	}
	p := replayer(t)
	var runs []Trace
	for n := range uint64(2) {
		for name, r := range map[string]*Recorder{"contended": contend(t, *seed+n), "held": hold(t, *seed+n, nil)} {
			trace, err := r.Trace(name, clockRate, margin)
			if err == nil {
				err = p.Replay(t.Context(), trace)
			}
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, trace)
		}
	}
	var lies atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, c := range corruptions {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(*seed, 3))
				notified := 0
				for _, trace := range runs {
					for _, i := range rng.Perm(len(trace.Events)) {
						lie := trace
						if lie.Events = c.lie(slices.Clone(trace.Events), i); lie.Events == nil {
							continue
						}
						var rejected *RejectedError
						if err := p.Replay(t.Context(), lie); !errors.As(err, &rejected) {
							t.Errorf("seed %d: told of event %d, %v: %v", *seed, i, trace.Events[i], err)
						}
						if notified++; notified%places == 0 {
							break
						}
					}
				}
				lies.Add(int64(notified))
				if notified < places {
					t.Errorf("told at %d places only", notified)
				}
			})
		}
	})
	t.Logf("%d lies of %d kinds about %d runs, from seed %d", lies.Load(), len(corruptions), len(runs), *seed)
}

// overstating is an authority whose answers promise twice the time that it granted.
type overstating struct{ lease.Authority }

func (o overstating) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := o.Authority.Do(ctx, name, req)
	res.MinRemaining *= 2
	return res, err
}

// TestReplayFindsBelief lets CheckAlive return true for too long, because the authority promises
// too much time, or because the sessions subtract too little for clock drift. The model must reject
// at least one of 20 runs.
func TestReplayFindsBelief(t *testing.T) {
	p := replayer(t)
	for _, c := range []struct {
		name    string
		between func(lease.Authority) lease.Authority
		rate    float64
	}{
		{"told too much", func(a lease.Authority) lease.Authority { return overstating{a} }, clockRate},
		{"taken off too little", nil, 4 * clockRate},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := range uint64(20) {
				trace, err := hold(t, *seed+n, c.between).Trace("held", c.rate, margin)
				if err != nil {
					t.Fatal(err)
				}
				var rejected *RejectedError
				if err := p.Replay(t.Context(), trace); errors.As(err, &rejected) {
					t.Logf("rejected in run %d: %v", n+1, rejected.Event)
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			t.Error("20 runs were accepted")
		})
	}
}
