package model

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/simulate"
)

// A recorded holder tells the Recorder when it has released the lease.
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

// anonymous wraps a recorded store for the third party that breaks leases. The third party calls the
// store without a recorded authority, so anonymous adds the third party's request to the context.
type anonymous struct {
	lease.Store
	call *call
}

func (s anonymous) named(ctx context.Context) context.Context {
	if ctx.Value(callKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, s.call)
}

func (s anonymous) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.Store.Load(s.named(ctx), name)
}

func (s anonymous) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.Store.Swap(s.named(ctx), name, old, next)
}

const simulatedName = "simulated"

// special lists the faults whose replay needs a departure or a period, or that the model rejects.
var special = map[string]struct {
	departure Departure
	period    lease.Period // the grace period of the third party's breaks
	outside   string       // why the model rejects the fault; empty if it does not
}{
	"break at once":                {departure: Excluded, period: lease.Grace(0)},
	"break with grace":             {period: lease.Grace(term)},
	"store clock forward":          {departure: Excluded},
	"store clock backward":         {departure: Lengthened},
	"store restarted, new term":    {departure: Lengthened},
	"store restarted, memory lost": {departure: Excluded, outside: "tokens fall, which SPEC S3 excludes"},
	"stale read":                   {outside: "a load tells the past, which SPEC S8 excludes"},
	"hostile record":               {outside: "a person writes into the store by hand; SPEC A7 describes the result"},
}

// TestReplaySimulator replays the actions of the simulator's sessions under every fault. For each
// fault that needs a departure, the model must reject at least one run without this departure. The
// model must also reject at least one run with each of the three faults that it does not cover.
//
// SPEC A5, H6, H9, H13, H15, H19.
func TestReplaySimulator(t *testing.T) {
	replayers := map[Departure]*Replayer{"": replayer(t), Excluded: replayer(t, Excluded), Lengthened: replayer(t, Lengthened)}
	runs, a := max(4, *traces/10), new(account)
	covered, known := 0, 0
	t.Run("all", func(t *testing.T) {
		for i, f := range simulate.Faults {
			how, ok := special[f.Name]
			if ok {
				known++
			}
			if how.outside == "" {
				covered++
			}
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				without := how.departure // the only departure that is allowed in the replay that must reject some of the runs
				if how.outside == "" {
					without = ""
				}
				rejected := 0
				for n := range runs {
					const rate = clockRate / 2 // the trace has package time instead of the holders' clocks, whose rates differ from it by up to this rate
					r := simulated(t, *seed+uint64(1000*i+n), f, how.period)
					if how.outside == "" {
						a.replay(t, replayers[how.departure], r, rate, margin)
					}
					if how.outside == "" && how.departure == "" || rejected > 0 {
						continue
					}
					trace, err := r.Trace(simulatedName, rate, margin)
					if err == nil {
						err = replayers[without].Replay(t.Context(), trace)
					}
					if err != nil {
						t.Logf("run %d, replayed without any departure but %q: %.300v", n, without, err)
						rejected++
					}
				}
				if (how.outside != "" || how.departure != "") && rejected == 0 {
					t.Errorf("none of %d runs was rejected without any departure but %q", runs, without)
				}
			})
		}
	})
	if covered != 17 || known != len(special) {
		t.Errorf("%d faults are covered, %d of %d special ones", covered, known, len(special))
	}
	t.Logf("%d faults, %d traces, %d events, from seed %d; %d traces are beyond the model", covered, a.traces, a.events, *seed, a.beyond)
}

// simulated runs the simulator once, and returns the recorded run.
func simulated(t *testing.T, seed uint64, f *simulate.Fault, p lease.Period) *Recorder {
	r := new(Recorder)
	senders, holders := 0, 0
	synctest.Test(t, func(t *testing.T) {
		report := simulate.Run(t, simulate.Config{
			Seed: seed, For: 10 * time.Minute, Faults: []*simulate.Fault{f},
			Store: func(s lease.Store) lease.Store {
				return anonymous{r.Store(s), &call{holder: NotAHolder, req: lease.Request{Action: lease.ActionBreak, Period: p}}}
			},
			Authority: func(a lease.Authority) lease.Authority {
				senders++
				return r.Authority(senders-1, a)
			},
			Holder: func(h simulate.Holder) simulate.Holder {
				r.Holder(holders, simulatedName, h)
				holders++
				return recorded{h, r, holders - 1, simulatedName}
			},
		})
		if report.Renewed == 0 {
			t.Errorf("nothing was held: %v", report)
		}
	})
	return r
}
