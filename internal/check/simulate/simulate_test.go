// Package simulate runs three Sessions over one store in fake time, under drawn faults, and compares what
// the holders believe with the store at random instants.
package simulate

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

var (
	seed = flag.Uint64("seed", 0, "of the first run; 0 draws one")
	held = flag.Duration("held", 24*time.Hour, "how long leases are held in TestYear")
)

// The clocks of the store and of the holders are wrong by up to half of the drift that the holders allow.
const (
	name     = "simulated"
	duration = 30 * time.Second
	drift    = 0.001
	latency  = 20 * time.Millisecond // the longest time that a call takes, and that its answer takes
	stopTime = 2 * time.Second       // the longest time until the work of a holder stops, well within the StopWindow
)

// A world has three holders of one lease, and a resource behind a guard.
type world struct {
	t               testing.TB
	bug             string
	clock           *leasefault.Clock // of the store
	store           lease.Store       // without the faults of loads
	restart, forget func()
	stale, hostile  atomic.Bool // loads return old records, or records that claim to last for years
	voids, pauses   bool        // whether a fault of the run has them
	holders         []*holder
	guard           fencing.Guard

	mu      sync.Mutex
	rng     *rand.Rand
	value   int         // of the resource
	last    lease.Token // of the last write
	working int
	report
}

// A report is what a run has seen.
type report struct {
	grants, writes, samples int
	held                    time.Duration
	bad                     []string
}

func (w *world) bads(format string, args ...any) {
	w.bad = append(w.bad, fmt.Sprintf(format, args...))
}

func (w *world) float() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64()
}

func (w *world) upTo(most time.Duration) time.Duration {
	return time.Duration(w.float() * float64(most))
}

func (w *world) rate(most float64) float64 { return 1 + most*(2*w.float()-1) }

// A holder works under the lease, over a network and with a clock of its own.
type holder struct {
	*world
	*session.Session
	clock *leasefault.Clock
	fault atomic.Pointer[leasefault.Fault] // of the network
}

func (w *world) open(i int, store lease.Store) *holder {
	h := &holder{world: w, clock: leasefault.NewClock()}
	h.clock.Rate(w.rate(drift / 2))
	slow := leasefault.ScriptStore(store, leasefault.Always(leasefault.LoadOrSwap, func(ctx context.Context, c *leasefault.Call) error {
		return leasefault.DelayRequest(w.upTo(latency/4))(ctx, c) // so that other requests come between a load and its swap
	}))
	a := leasefault.Script(lease.NewAuthority(slow), leasefault.Always(leasefault.Any, h.transport))
	o := &session.Options{Owner: fmt.Sprint("holder ", i), Duration: duration, MaxClockDrift: drift, Clock: h.clock,
		Watch: w.float() < 0.5, Logger: slog.New(slog.DiscardHandler)}
	if w.bug == "no stop window" {
		o.StopWindow = -1
	}
	var err error
	if h.Session, err = session.New(leasefault.Lossy(a, leasefault.LoseSignals(uint64(i), 0.5)), name, o); err != nil {
		w.t.Fatal(err)
	}
	return h
}

// transport carries a call. If the network of the holder has a fault, it meets half of the calls.
func (h *holder) transport(ctx context.Context, c *leasefault.Call) (err error) {
	time.Sleep(h.upTo(latency))
	if f := h.fault.Load(); f != nil && h.float() < 0.5 {
		err = (*f)(ctx, c)
	} else {
		_ = c.Send(ctx)
	}
	time.Sleep(h.upTo(latency))
	return err
}

// run acquires the lease, works and releases it, again and again.
func (h *holder) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(h.upTo(5 * time.Second))
		if tok, err := session.AcquireWait(ctx, h, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}); err == nil {
			work, done := h.WhileHeld(ctx)
			h.work(work, tok)
			done()
			within, cancel := context.WithTimeout(context.Background(), duration)
			_ = h.Release(within) // even if the outcome is unknown, the belief is over
			cancel()
			if h.CheckAlive() {
				h.mu.Lock()
				h.bads("%s believes after a release", h.Owner())
				h.mu.Unlock()
			}
		}
	}
}

// work reads and writes the resource, and does not look at the lease before a write. Half of the works are
// prompt: they stop soon after their context has ended, before the work of another holder begins, unless
// processes are paused. The others do not notice the end.
func (h *holder) work(ctx context.Context, tok lease.Token) {
	ended, prompt := ctx.Done(), 1
	if h.float() < 0.5 {
		ended, prompt = nil, 0
	}
	h.mu.Lock()
	h.grants++
	if h.working > 0 && !h.voids && !h.pauses {
		h.bads("%s begins to work, and another holder has not stopped", h.Owner())
	}
	h.working += prompt
	h.mu.Unlock()
	admitted := h.guard.Advance(tok) == nil
	for range int(10 * h.float()) {
		h.mu.Lock()
		seen := h.value
		h.mu.Unlock()
		select {
		case <-ended:
		case <-h.clock.After(h.upTo(duration / 2)):
		}
		if admitted {
			h.write(tok, seen)
		}
	}
	if ctx.Err() != nil {
		time.Sleep(h.upTo(stopTime))
	}
	h.mu.Lock()
	h.working -= prompt
	h.mu.Unlock()
}

// write replaces the value that was seen. What the guard admits must be of the newest holder.
func (h *holder) write(tok lease.Token, seen int) {
	write := func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.value != seen && h.last != tok || h.last.Compare(tok) > 0 {
			h.bads("a write with %s replaced one with %s", tok, h.last)
		}
		h.value, h.last = seen+1, tok
		h.writes++
		return nil
	}
	if h.bug == "no guard" {
		_ = write()
		return
	}
	_ = h.guard.Do(tok, write)
}

// sample compares the beliefs of all holders with the store at random instants, except those that change at
// the same instant.
func (w *world) sample(ctx context.Context) {
	for ctx.Err() == nil {
		step := w.upTo(time.Second)
		time.Sleep(step)
		believers := 0
		for _, h := range w.holders {
			id := h.ID()
			if !h.CheckAlive() {
				continue
			}
			snap, err := w.store.Load(ctx, name)
			if err != nil || !h.CheckAlive() || h.ID() != id {
				continue
			}
			w.mu.Lock()
			if believers++; !w.voids && (snap.Record.At(snap.Now).ID != id || !snap.Record.At(snap.Now).State.Locked() || believers > 1) {
				w.bads("%s believes in %s; the store has %v at %v", h.Owner(), id, snap.Record, snap.Now)
			}
			w.held += step
			w.mu.Unlock()
		}
		w.mu.Lock()
		w.samples++
		w.mu.Unlock()
	}
}

// run runs a world with faults for the given time. Without faults, it must then recover.
func run(t *testing.T, seed uint64, d time.Duration, bug string, faults ...fault) report {
	w := &world{bug: bug, clock: leasefault.NewClock(), rng: rand.New(rand.NewPCG(seed, 0))}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		for _, f := range faults {
			w.voids, w.pauses = w.voids || f.voids && bug != "a break counts", w.pauses || f.pauses
		}
		store := leasefault.Skew(memory.New(&memory.Options{Limits: lease.Limits{MaxDuration: time.Minute}}), w.clock)
		store, w.forget = leasefault.Restartable(store, leasefault.LoseMemory)
		w.store, w.restart = leasefault.Restartable(store, leasefault.ResetTerm)
		if bug == "a swap that does not compare" {
			w.store = blind{w.store}
		}
		seen := leasefault.ScriptStore(leasefault.Tamper(w.store, w.tamper), leasefault.Always(leasefault.Load, leasefault.If(w.stale.Load, leasefault.Stale)))
		usual := w.rate(drift / 2)
		if bug == "a clock that drifts too much" {
			usual = 1.1
		}
		w.clock.Rate(usual)
		ctx, cancel := context.WithCancel(context.Background())
		var all, begun sync.WaitGroup
		for i := range 3 {
			w.holders = append(w.holders, w.open(i, seen))
		}
		for _, h := range w.holders {
			all.Go(func() { h.run(ctx) })
		}
		all.Go(func() { w.sample(ctx) })
		end := time.Now().Add(d)
		for _, f := range faults {
			begun.Go(func() {
				for time.Now().Before(end) {
					time.Sleep(w.upTo(2 * duration))
					over := f.begin(w)
					time.Sleep(w.upTo(2 * duration))
					over()
				}
			})
		}
		begun.Wait()
		time.Sleep(time.Until(end))
		w.clock.Rate(usual)
		for range 2 { // before the second acquire, no fault has an effect any more
			before := w.acquired()
			time.Sleep(10 * duration)
			if w.acquired() == before {
				w.bads("no holder has acquired for %v without a fault", 10*duration)
			}
		}
		cancel()
		all.Wait()
		for _, h := range w.holders {
			_ = h.Close(context.Background())
		}
	})
	return w.report
}

func (w *world) acquired() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grants
}

func (w *world) tamper(_ string, r *lease.Record) {
	if w.hostile.Load() && r.State == lease.Leased && !r.Until.IsZero() {
		r.Until = r.Until.AddDate(3, 0, 0)
	}
}

// blind is a store whose Swap does not compare versions.
type blind struct{ lease.Store }

func (s blind) Swap(ctx context.Context, name string, _ lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	now, err := s.Load(ctx, name)
	if err != nil {
		return now, err
	}
	next.Epoch = max(next.Epoch, now.Record.Epoch)
	return s.Store.Swap(ctx, name, now, next)
}

func draw() uint64 {
	if *seed == 0 {
		return rand.Uint64()
	}
	return *seed
}

// TestYear runs worlds, each for an hour under a drawn pair of faults, until leases have been held for the
// given time in total.
//
//	go test -run Year ./internal/check/simulate -held 8760h -timeout 0
//
// SPEC A2, H1, H9, H11, H12, H13, H15, H19, G1, G2, M4.
func TestYear(t *testing.T) {
	first := draw()
	var next atomic.Uint64
	var mu sync.Mutex
	var total report
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for all := time.Duration(0); all < *held && !t.Failed(); {
					s := first + next.Add(1) - 1
					rng := rand.New(rand.NewPCG(s, 1))
					f, g := faults[rng.IntN(len(faults))], faults[rng.IntN(len(faults))]
					r := run(t, s, time.Hour, "", f, g)
					for _, bad := range r.bad[:min(len(r.bad), 10)] {
						t.Errorf("%s and %s: %s: repeat it with -seed %d -held 1ns", f.name, g.name, bad, s)
					}
					mu.Lock()
					total.grants, total.writes, total.samples, total.held = total.grants+r.grants, total.writes+r.writes, total.samples+r.samples, total.held+r.held
					all = total.held
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d runs from seed %d: %d grants, %d writes, %d samples, %v held", next.Load(), first, total.grants, total.writes, total.samples, total.held.Round(time.Second))
	if total.writes < total.grants {
		t.Error("that proves little")
	}
}

// A check that finds no error proves something only if it finds planted bugs.
func TestPlantedBugs(t *testing.T) {
	for bug, under := range map[string]string{
		"a clock that drifts too much": "request lost", "a swap that does not compare": "request delayed",
		"no guard": "holder paused", "no stop window": "request lost", "a break counts": "break at once",
	} {
		t.Run(bug, func(t *testing.T) {
			for _, f := range faults {
				for n := uint64(0); f.name == under; n++ {
					if r := run(t, draw()+n, time.Hour, bug, f); len(r.bad) > 0 {
						t.Logf("found in run %d: %s", n+1, r.bad[0])
						return
					}
					if n == 100 { // one in about ten runs finds the bug that is found most rarely
						t.Fatalf("not found in %d runs", n)
					}
				}
			}
			t.Errorf("there is no fault %q", under)
		})
	}
}
