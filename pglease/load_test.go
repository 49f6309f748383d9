package pglease_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/pglease/internal/pgserver"
	"github.com/fencedlease/lease/session"
)

var (
	loadLeases = flag.Int("load.leases", 300, "leases that TestLoad holds at once")
	loadRuns   = flag.Int("load.runs", 1, "runs of TestLoad")
	loadHold   = flag.Duration("load.hold", 4*time.Second, "how long TestLoad holds all its leases")
	loadRate   = flag.Float64("load.rate", 0, "acquires and releases a second below which TestLoad fails")
	loadWake   = flag.Duration("load.wake", 5*time.Second, "time from a release to the signal above which TestLoad fails, unless the machine stalls")
)

// One process holds many leases of 10 s through a pool of 16, on a server that syncs every commit.
// The process acquires these leases as fast as it can. It keeps them while it acquires and releases
// other leases, and then releases them. No lease may be lost. A second Store watches the first 200
// leases. The full run is:
//
//	go test -run TestLoad -v -timeout 30m -load.leases 10000 -load.runs 10 -load.hold 25s -load.rate 400 -load.wake 100ms
func TestLoad(t *testing.T) {
	dir, err := os.MkdirTemp("", "pglease")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := pgserver.New(dir, "fsync=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	for run := range *loadRuns {
		t.Run(fmt.Sprint(run), func(t *testing.T) { load(t, server.URL(server.Database(t))) })
	}
}

func load(t *testing.T, url string) {
	const pooled, workers = 16, 64
	s := store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = pooled }), nil)
	var lost atomic.Int64
	leases := make([]*session.Session, *loadLeases)
	for i := range leases {
		l, err := s.Lease(fmt.Sprint("load/", i), &session.Options{Duration: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l.OnLost(func(error) { lost.Add(1) })
		leases[i] = l
	}
	t.Cleanup(func() {
		together(workers, len(leases), func(i int) { _ = leases[i].Close(context.Background()) })
	})

	var failed atomic.Int64
	began := time.Now()
	together(workers, len(leases), func(i int) {
		if ok, err := leases[i].Acquire(t.Context()); err != nil || !ok {
			failed.Add(1)
		}
	})
	acquires := float64(len(leases)) / time.Since(began).Seconds()

	churns, stop := churn(t, s)
	time.Sleep(*loadHold) // a real engine
	stop()
	churned := float64(churns.Load()) / loadHold.Seconds()

	w := watchSome(t, url, min(len(leases), 200))
	stall := measureStall()
	began = time.Now()
	together(workers, len(leases), func(i int) {
		w.released(i, func() {
			if err := leases[i].Release(t.Context()); err != nil {
				failed.Add(1)
			}
		})
	})
	releases := float64(len(leases)) / time.Since(began).Seconds()
	t.Logf("%d leases: %.0f acquires/s, %.0f acquires and releases/s beside all renewals, %.0f releases/s; %d lost, %d failed",
		len(leases), acquires, churned, releases, lost.Load(), failed.Load())
	if lost.Load() > 0 || failed.Load() > 0 {
		t.Errorf("%d leases were lost, and %d requests failed", lost.Load(), failed.Load())
	}
	if both := 2 / (1/acquires + 1/releases); both < *loadRate {
		t.Errorf("%.0f acquires and releases a second, want %.0f", both, *loadRate)
	}
	delays := w.delays(t)
	worst, late := delays[len(delays)-1], stall()
	t.Logf("woken after %v (median), %v (99 of 100), %v (worst); a timer ran %v late", delays[len(delays)/2], delays[len(delays)*99/100], worst, late)
	if worst > *loadWake+late {
		t.Errorf("a waiter was woken after %v, and a timer ran %v late; want %v", worst, late, *loadWake)
	}
}

// measureStall measures how late a timer of this process fires. The returned function ends the
// measurement, and returns the longest delay.
func measureStall() func() time.Duration {
	const period = 5 * time.Millisecond
	var longest time.Duration
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			began := time.Now()
			select {
			case <-ends:
				return
			case <-time.After(period):
				longest = max(longest, time.Since(began)-period)
			}
		}
	}()
	return func() time.Duration {
		close(ends)
		<-ended
		return longest
	}
}

// together calls f with each number below n. The given number of goroutines share the calls.
func together(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	all.Wait()
}

// churn acquires and releases leases until the function stop is called. The result done counts the
// granted requests.
func churn(t *testing.T, s *pglease.Store) (done *atomic.Int64, stop func()) {
	done = new(atomic.Int64)
	var stopped atomic.Bool
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			a, name := s.Authority(), fmt.Sprint("churn/", i)
			for !stopped.Load() {
				for _, req := range []lease.Request{acquire(idA, 10*time.Second), release(idA)} {
					if _, err := a.Do(t.Context(), name, req); err != nil {
						t.Errorf("%v: %v", req.Action, err)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	return done, func() { stopped.Store(true); all.Wait() }
}

// watches holds the signals that a second Store receives for the first leases.
type watches struct {
	mu               sync.Mutex
	called, returned []time.Time // each release
	signals          [][]time.Time
	lost             int
}

func watchSome(t *testing.T, url string, n int) *watches {
	s := store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
	w := &watches{called: make([]time.Time, n), returned: make([]time.Time, n), signals: make([][]time.Time, n)}
	for i := range n {
		signals, err := s.Watch(t.Context(), fmt.Sprint("load/", i))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range signals {
				w.mu.Lock()
				w.signals[i] = append(w.signals[i], time.Now())
				w.mu.Unlock()
			}
			w.mu.Lock()
			w.lost++
			w.mu.Unlock()
		}()
	}
	return w
}

// released calls the function release for the i-th lease, and notes the times before and after the
// call.
func (w *watches) released(i int, release func()) {
	called := time.Now()
	release()
	if i < len(w.returned) {
		w.called[i], w.returned[i] = called, time.Now()
	}
}

// delays returns, for each release, the time from its return to its signal. The times are sorted.
func (w *watches) delays(t *testing.T) []time.Duration {
	var all []time.Duration
	eventually(t, "the signal of every release", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		all = nil
		for i, signals := range w.signals {
			first := slices.IndexFunc(signals, w.called[i].Before)
			if first < 0 {
				return fmt.Errorf("none of lease %d; %d watches are lost", i, w.lost)
			}
			all = append(all, max(0, signals[first].Sub(w.returned[i])))
		}
		return nil
	})
	slices.Sort(all)
	return all
}
