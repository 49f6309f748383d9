package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// drift bounds the rates of the clocks of a world, which are from 1-drift to 1+drift.
const drift = 0.05

// A rated clock shows its own time of day, and runs at its own rate.
type rated struct {
	started, shows time.Time
	rate           float64
}

func newRated(r *rand.Rand) *rated {
	now := time.Now()
	return &rated{now, now.Add(time.Duration(r.Int64N(int64(1000*time.Hour))) - 500*time.Hour), 1 - drift + 2*drift*r.Float64()}
}

func (c *rated) Now() time.Time {
	return c.shows.Add(time.Duration(float64(time.Since(c.started)) * c.rate))
}

// After calls time.After, because a Store does not wait with its clock.
func (c *rated) After(d time.Duration) <-chan time.Time { return time.After(d) }

// A world has some contenders for one lease over one engine. Each has its own clock, and the network delays
// requests. The world checks every commit when it happens.
type world struct {
	*testing.T
	rand    *rand.Rand
	mu      sync.Mutex
	beliefs map[lease.ID]belief
	broken  map[lease.ID]int // how often an ID was broken
	grants  int
	breaks  int
	errors  []string
}

// A belief says until which time on its clock a contender is certain that its ID is in force, provided that
// the ID was not broken again after the contender sent its request.
type belief struct {
	clock *rated
	until time.Time
	known int
}

func (w *world) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

// The engine calls look at every commit. If a holder has not given up its lease, another process may end
// the lease only after the holder no longer believes that it holds it.
func (w *world) look(old, next engine.Retained) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, is := old.Record, next.Record
	if is.Epoch > was.Epoch {
		w.grants++
	}
	if is.ID == was.ID && (is.State == lease.Breaking || is.State == lease.Broken) {
		w.broken[was.ID]++
		w.breaks++
	}
	b, believed := w.beliefs[was.ID]
	if believed && is.ID != was.ID && b.known == w.broken[was.ID] && b.clock.Now().Before(b.until) {
		w.errors = append(w.errors, fmt.Sprintf("%v ended %v before its holder's belief", was, b.until.Sub(b.clock.Now())))
	}
}

// ask carries out a request. The holder believes that it has the lease while the answer guarantees it.
func (w *world) ask(ctx context.Context, a lease.Authority, clock *rated, id lease.ID, req lease.Request) {
	w.mu.Lock()
	broken := w.broken[id]
	w.mu.Unlock()
	sent := clock.Now()
	res, err := a.Do(ctx, name, req)
	w.mu.Lock()
	defer w.mu.Unlock()
	if res.Record.ID != id || err != nil && !errors.Is(err, lease.ErrBroken) || broken != w.broken[id] {
		return // the test does not know which break the answer shows
	}
	switch req.Action {
	case lease.ActionAcquire, lease.ActionRenew, lease.ActionRead:
		w.beliefs[id] = belief{clock, sent.Add(time.Duration(float64(res.MinRemaining) * (1 - drift) / (1 + drift))), broken}
	}
}

func (w *world) holds(clock *rated, id lease.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, believed := w.beliefs[id]
	return believed && clock.Now().Before(b.until)
}

// contend runs one contender.
func (w *world) contend(ctx context.Context, a lease.Authority, clock *rated) {
	for n := 0; ctx.Err() == nil; n++ {
		var id lease.ID
		w.mu.Lock()
		for i := range id {
			id[i] = byte(w.rand.Uint32())
		}
		w.mu.Unlock()
		w.ask(ctx, a, clock, id, acquire(id, time.Duration(1+w.intn(10))*time.Second))
		for w.holds(clock, id) && w.intn(8) > 0 { // or the holder crashes
			if w.intn(16) == 0 {
				w.mu.Lock()
				delete(w.beliefs, id)
				w.mu.Unlock()
				w.ask(ctx, a, clock, id, release(id))
				break
			}
			time.Sleep(time.Duration(w.intn(2000)) * time.Millisecond)
			if w.intn(4) == 0 {
				w.ask(ctx, a, clock, id, lease.Request{Action: lease.ActionRead})
				continue
			}
			w.ask(ctx, a, clock, id, renew(id))
		}
		time.Sleep(time.Duration(w.intn(3000)) * time.Millisecond)
		switch w.intn(12) {
		case 0:
			w.ask(ctx, a, clock, id, breaks(time.Duration(w.intn(5000))*time.Millisecond))
		case 1:
			w.ask(ctx, a, clock, id, lease.Request{Action: lease.ActionWrite})
		}
	}
}

// run runs a world for some minutes of fake time.
func run(t *testing.T, seed uint64, over func(*engine.Store) lease.Authority) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = &world{T: t, rand: rand.New(rand.NewPCG(seed, 0)), beliefs: map[lease.ID]belief{}, broken: map[lease.ID]int{}}
		e := newFake()
		delay := func() {
			d := time.Duration(w.intn(50)) * time.Millisecond
			if w.intn(10) == 0 {
				d *= 40
			}
			time.Sleep(d)
		}
		e.before, e.after, e.commit = delay, delay, w.look
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 3 + w.intn(3) {
			w.mu.Lock()
			clock := newRated(w.rand)
			w.mu.Unlock()
			a := over(newStore(t, e, engine.Options{Clock: clock, MaxClockDrift: drift}))
			for range 1 + w.intn(2) {
				all.Go(func() { w.contend(ctx, a, clock) })
			}
		}
		all.Wait()
	})
	return w
}

// SPEC A5, H9: no contender takes the lease over while the holder believes that it holds it. The rates and
// times of the clocks and the delays of the network are random.
func TestNobodyIsEarly(t *testing.T) {
	first, worlds := rand.Uint64(), 200
	if testing.Short() {
		worlds = 40
	}
	grants, breaks := 0, 0
	for i := range worlds {
		w := run(t, first+uint64(i), func(s *engine.Store) lease.Authority {
			if i%4 == 0 {
				return lease.NewAuthority(s)
			}
			return s.Authority()
		})
		for _, err := range w.errors {
			t.Errorf("seed %d: %s", first+uint64(i), err)
		}
		grants, breaks = grants+w.grants, breaks+w.breaks
	}
	if grants < 20*worlds || breaks < worlds {
		t.Errorf("seed %d: %d grants and %d breaks in %d worlds prove nothing", first, grants, breaks, worlds)
	}
}

// A mutant is a Store whose snapshots are wrong in one way. The record that Swap returns is correct: an
// error in it would affect both the holders and the contenders, and the two effects would cancel out.
type mutant struct {
	*engine.Store
	change func(*lease.Snapshot)
}

func (m mutant) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := m.Store.Load(ctx, name)
	m.change(&snap)
	return snap, err
}

func (m mutant) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := m.Store.Swap(ctx, name, old, next)
	record := snap.Record
	m.change(&snap)
	snap.Record = record
	return snap, err
}

// The random worlds find every mutant.
func TestWorldsFindMutants(t *testing.T) {
	for what, change := range map[string]func(*lease.Snapshot){
		"a contender counts from the earliest time at which it may have been committed": func(s *lease.Snapshot) {
			if !s.Record.Until.IsZero() {
				s.Record.Until = s.Record.Until.Add(-s.Uncertainty)
			}
		},
		"a contender is early": func(s *lease.Snapshot) {
			if !s.Record.Until.IsZero() {
				s.Record.Until = s.Record.Until.Add(-1500 * time.Millisecond)
			}
		},
		"a holder takes the bound from above": func(s *lease.Snapshot) { s.Uncertainty = 0 },
	} {
		t.Run(what, func(t *testing.T) {
			const first = 1
			for seed := uint64(first); seed < first+200; seed++ {
				w := run(t, seed, func(s *engine.Store) lease.Authority { return lease.NewAuthority(mutant{s, change}) })
				if len(w.errors) > 0 {
					t.Logf("found in world %d: %s", seed, w.errors[0])
					return
				}
			}
			t.Error("not found in 200 worlds")
		})
	}
}
