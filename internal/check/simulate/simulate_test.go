package simulate

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

var (
	seed  = flag.Uint64("seed", 1, "of the first run; run n has seed+n")
	held  = flag.Duration("held", 24*time.Hour, "how long leases are held in TestYear")
	seeds = flag.Int("seeds", 1, "runs a schedule")
	long  = flag.Duration("for", 10*time.Minute, "how long there are faults in a run")
)

// run runs one simulation in a synctest bubble of its own.
func run(t *testing.T, c Config) (r Report) {
	synctest.Test(t, func(t *testing.T) { r = Run(t, c) })
	return r
}

// checked runs a simulation that must not violate a promise. If the simulation violates a promise,
// checked logs a command that repeats the run.
func checked(t *testing.T, c Config) Report {
	r := run(t, c)
	for _, v := range r.Violations {
		t.Error(v)
	}
	if len(r.Violations) > 0 {
		t.Logf("go test -run 'Faults/^%s$' ./internal/check/simulate -seed %d -for %v",
			strings.ReplaceAll(title(c.Faults), " ", "_"), c.Seed, c.For)
	}
	return r
}

func title(faults []*Fault) (s string) {
	for i, f := range faults {
		if i > 0 {
			s += " and "
		}
		s += f.Name
	}
	return s
}

// schedules returns every single fault and every pair of faults.
func schedules() (s [][]*Fault) {
	for i, f := range Faults {
		s = append(s, []*Fault{f})
		for _, g := range Faults[:i] {
			s = append(s, []*Fault{f, g})
		}
	}
	return s
}

// TestFaults runs simulations with every single fault and with every pair of faults. No run may
// violate a promise that its faults do not exclude.
//
// SPEC A2, H1, H3, H9, H11, H12, H13, H15, H19, G1, G2, M4.
func TestFaults(t *testing.T) {
	schedules := schedules()
	if len(Faults) != 20 || len(schedules) != 20+190 {
		t.Fatalf("%d faults in %d schedules", len(Faults), len(schedules))
	}
	var total Report
	for _, faults := range schedules {
		t.Run(title(faults), func(t *testing.T) {
			for n := range *seeds {
				r := checked(t, Config{Seed: *seed + uint64(n), For: *long, Faults: faults})
				if r.Acquired == 0 || r.Written == 0 {
					t.Errorf("seed %d: nothing happened: %v", *seed+uint64(n), r)
				}
				total.Add(r)
			}
		})
	}
	t.Logf("%d schedules, %d seeds each from %d: %v", len(schedules), *seeds, *seed, total)
}

// The same seed gives the same run, so that a violation can be repeated. A run in which a holder is
// paused cannot be repeated, because all events that the pause delays happen at one instant, in no
// fixed order.
func TestRepeated(t *testing.T) {
	for i, f := range Faults {
		pair := []*Fault{f, Faults[(i+1)%len(Faults)]}
		if strings.Contains(title(pair), "holder paused") {
			continue
		}
		t.Run(title(pair), func(t *testing.T) {
			c := Config{Seed: *seed + uint64(i), For: *long, Faults: pair}
			if first, second := run(t, c).String(), run(t, c).String(); first != second {
				t.Errorf("seed %d:\n%s\n%s", c.Seed, first, second)
			}
		})
	}
}

// TestYear runs simulations with random faults and pairs of faults until holders have held leases
// for a given time in total. Each core makes one series of runs. The default time is a day. The
// following command runs a year:
//
//	go test -run Year ./internal/check/simulate -held 8760h
//
// SPEC A2, H9, H15, G1.
func TestYear(t *testing.T) {
	var mu sync.Mutex
	var total Report
	runs := 0
	t.Run("series", func(t *testing.T) {
		series := runtime.GOMAXPROCS(0)
		for i := range series {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				rng, schedules := rand.New(rand.NewPCG(*seed, uint64(i))), schedules()
				for left := *held / time.Duration(series); left > 0 && !t.Failed(); {
					r := checked(t, Config{Seed: rng.Uint64(), For: 24 * *long, Faults: schedules[rng.IntN(len(schedules))]})
					left -= r.Held
					mu.Lock()
					total.Add(r)
					runs++
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d runs from seed %d: %v", runs, *seed, total)
}

// A check that finds no error proves something only if it finds planted bugs. The simulation must find
// each of these bugs within a few runs.
func TestPlantedBugs(t *testing.T) {
	for _, bug := range []struct {
		name   string
		faults []string
		plant  func(*Config)
		belief bool // the bug must violate the promise belief; if false, any violation counts
	}{
		{"belief is longer than the grant", []string{"holder paused"}, func(c *Config) { c.Authority = overstate }, true},
		{"a swap that does not compare", []string{"request delayed"}, func(c *Config) { c.Store = blind }, true},
		{"a loss told twice", []string{"request lost"}, func(c *Config) { c.Holder = twice }, false},
		{"a context that outlives its lease", []string{"break at once"}, func(c *Config) { c.Holder = unbound }, false},
		{"no stop window", []string{"request lost"}, func(c *Config) { c.StopWindow, c.For = -1, time.Hour }, true},
		{"a loss never told", []string{"request lost"}, func(c *Config) { c.Holder = never }, false},
		{"no guard", []string{"holder paused"}, func(c *Config) { c.Unguarded = true }, false},
		{"a guard without Advance", []string{"break at once"}, func(c *Config) { c.NoAdvance = true }, false},
		{"a break that is not excluded", []string{"break at once"}, include, true},
		{"a stepped clock that is not excluded", []string{"store clock forward"}, include, true},
		{"a lost memory that is not excluded", []string{"store restarted, memory lost"}, include, true},
	} {
		t.Run(bug.name, func(t *testing.T) {
			const most = 20
			for n := range uint64(most) {
				c := Config{Seed: *seed + n, For: *long, Faults: named(t, bug.faults...)}
				bug.plant(&c)
				r := run(t, c)
				if bug.belief && r.ViolationsOfBelief > 0 || !bug.belief && r.Others > 0 {
					t.Logf("found in run %d: %s", n+1, r.Violations[0])
					return
				}
			}
			t.Errorf("not found in %d runs", most)
		})
	}
}

func named(t *testing.T, names ...string) (faults []*Fault) {
	for _, name := range names {
		for _, f := range Faults {
			if f.Name == name {
				copied := *f
				faults = append(faults, &copied)
			}
		}
	}
	if len(faults) != len(names) {
		t.Fatalf("not all of %q are faults", names)
	}
	return faults
}

// include makes the faults of a Config exclude no promise.
func include(c *Config) {
	for _, f := range c.Faults {
		f.Excludes = 0
	}
}

// overstate returns an authority that grants a shorter duration than its answers say.
func overstate(a lease.Authority) lease.Authority { return overstating{a} }

type overstating struct{ lease.Authority }

func (a overstating) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	asked := req.Duration
	req.Duration -= req.Duration / 4
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionAcquire && err == nil {
		res.MinRemaining = asked
	}
	if req.Action == lease.ActionRenew && err == nil {
		res.MinRemaining = duration
	}
	return res, err
}

// blind returns a store whose Swap takes some time, and does not compare versions.
func blind(s lease.Store) lease.Store { return blindStore{s} }

type blindStore struct{ lease.Store }

func (s blindStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	time.Sleep(duration / 10)
	now, err := s.Load(ctx, name)
	if err != nil {
		return now, err
	}
	next.Epoch = max(next.Epoch, now.Record.Epoch)
	return s.Store.Swap(ctx, name, now, next)
}

func twice(h Holder) Holder { return telling{h, 2} }
func never(h Holder) Holder { return telling{h, 0} }

// telling is a holder that reports each loss as often as times says.
type telling struct {
	Holder
	times int
}

func (h telling) OnLost(f func(error)) func() bool {
	return h.Holder.OnLost(func(err error) {
		for range h.times {
			f(err)
		}
	})
}

// unbound returns a holder whose WhileHeld returns a context that does not end with the lease.
func unbound(h Holder) Holder { return free{h} }

type free struct{ Holder }

func (h free) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
