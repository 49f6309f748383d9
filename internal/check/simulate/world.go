package simulate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// These are the parameters of the simulated world. Three holders share one lease, with the default
// proportions of a session. The rate of a clock differs from true time by at most half of the drift
// that the holders allow.
const (
	name      = "simulated"
	holders   = 3
	duration  = 30 * time.Second
	clockRate = 0.001
	latency   = 20 * time.Millisecond // the longest time that a call takes, and that its answer takes
	reaction  = time.Millisecond      // the longest time until an actor reacts; it makes two actors act at different instants
)

// A Config contains the settings of one run.
type Config struct {
	Seed   uint64
	For    time.Duration // how long the run has faults; after this time, the run continues without faults
	Faults []*Fault

	// The functions Store, Authority and Holder plant bugs: each of them wraps a part of the
	// simulation. If a function is nil, the part is unchanged.
	Store      func(lease.Store) lease.Store
	Authority  func(lease.Authority) lease.Authority
	Holder     func(Holder) Holder
	StopWindow time.Duration // the stop window of the sessions; 0: the default
	Unguarded  bool          // writes bypass the guard
	NoAdvance  bool          // holders do not show their token before they read
}

// A Report has the results of a run.
type Report struct {
	Acquired, Lost, Renewed    int
	Written, Refused           int // the numbers of writes that the guard accepted and refused
	Overlaps                   int // how often two holders worked at the same time although one should have stopped
	Samples                    int
	Held                       time.Duration // the time for which the lease was held, summed over the holders
	Violations                 []string      // the texts of the first violations
	ViolationsOfBelief, Others int
}

// Add sums two reports.
func (r *Report) Add(s Report) {
	r.Acquired += s.Acquired
	r.Lost += s.Lost
	r.Renewed += s.Renewed
	r.Written += s.Written
	r.Refused += s.Refused
	r.Overlaps += s.Overlaps
	r.Samples += s.Samples
	r.Held += s.Held
	r.Violations = append(r.Violations, s.Violations...)
	r.ViolationsOfBelief += s.ViolationsOfBelief
	r.Others += s.Others
}

func (r Report) String() string {
	return fmt.Sprintf("%d acquired, %d lost, %d renewals, %d writes, %d refused by the guard, %d overlaps of work, %d samples, %v held, %d violations",
		r.Acquired, r.Lost, r.Renewed, r.Written, r.Refused, r.Overlaps, r.Samples, r.Held.Round(time.Second), r.ViolationsOfBelief+r.Others)
}

// A world is the state of a run.
type world struct {
	Config
	t        testing.TB
	excluded Promise           // the promises that the faults of the schedule exclude
	clock    *leasefault.Clock // the clock of the store
	store    lease.Store       // the store without the faults of loads
	restart  [2]func()         // the functions that simulate a restart of the store, by leasefault.Loss
	actors   []*actor
	resource resource
	stale    atomic.Bool // loads return old records
	hostile  atomic.Bool // loaded records claim that leases last for years

	mu     sync.Mutex
	report Report
	tokens map[lease.Token]string // the holder that acquired each token
}

// Run executes one run of the simulation, and must be called in a synctest bubble. Run registers
// its cleanup functions with t.
func Run(t testing.TB, c Config) Report {
	w := &world{Config: c, t: t, clock: leasefault.NewClock(), tokens: map[lease.Token]string{}}
	for _, f := range c.Faults {
		w.excluded |= f.Excludes
	}
	w.build()

	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, a := range w.actors {
		all.Go(func() { a.run(ctx) })
	}
	all.Go(func() { w.sample(ctx) })
	faults, stop := context.WithCancel(ctx)
	var applied sync.WaitGroup
	for i, f := range c.Faults {
		applied.Go(func() { w.apply(faults, f, c.dice(schedule, i)) })
	}
	time.Sleep(c.For)
	stop()
	applied.Wait()
	w.heal(ctx)
	cancel()
	all.Wait()
	for _, a := range w.actors {
		if err := a.lease.Close(context.Background()); err != nil {
			w.violate(otherwise, "%s: close: %v", a.who, err)
		}
	}
	return w.report
}

// build makes the holders, and the store with all its faults.
func (w *world) build() {
	var store lease.Store = memory.New(&memory.Options{Limits: lease.Limits{MaxDuration: time.Minute}})
	store = leasefault.Skew(store, w.clock)
	store, w.restart[leasefault.LoseMemory] = leasefault.Restartable(store, leasefault.LoseMemory)
	store, w.restart[leasefault.ResetTerm] = leasefault.Restartable(store, leasefault.ResetTerm)
	if w.Store != nil {
		store = w.Store(store)
	}
	w.store = store
	seen := leasefault.Tamper(store, w.tamper)
	seen = leasefault.ScriptStore(seen, leasefault.Always(leasefault.Load, leasefault.If(w.stale.Load, leasefault.Stale)))
	rates := w.dice(clocks, 0)
	w.clock.Rate(rates.rate(clockRate / 2))
	for i := range holders {
		w.actors = append(w.actors, newActor(w, i, rates.rate(clockRate/2), seen))
	}
}

// tamper changes a loaded record so that the lease claims to last for years, while the fault
// "hostile record" is active.
func (w *world) tamper(_ string, r *lease.Record) {
	if w.hostile.Load() && r.State == lease.Leased && !r.Until.IsZero() {
		r.Until = r.Until.AddDate(3, 0, 0)
	}
}
