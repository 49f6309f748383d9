package pglease_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

var (
	loadLeases = flag.Int("load.leases", 300, "leases that TestLoad holds at once")
	loadHold   = flag.Duration("load.hold", 4*time.Second, "how long TestLoad holds all its leases")
	loadRate   = flag.Float64("load.rate", 0, "acquires and releases a second below which TestLoad fails")
)

// One process holds many leases of 10 s through a pool of 16, on a server that syncs every commit.
// It keeps them while it acquires and releases other leases. No lease may be lost. The full run is:
//
//	go test -run TestLoad -v -timeout 30m -load.leases 10000 -load.hold 25s -load.rate 400
func TestLoad(t *testing.T) {
	const pooled, workers = 16, 64
	server := ownServer(t, "fsync=on")
	s := store(t, pool(t, server.URL(server.Database(t, pglease.Tables)), func(c *pgxpool.Config) { c.MaxConns = pooled }), nil)
	var lost, failed atomic.Int64
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
		shorthand.Together(workers, len(leases), func(i int) { _ = leases[i].Close(context.Background()) })
	})
	rate := func(f func(i int) (bool, error)) float64 {
		began := time.Now()
		shorthand.Together(workers, len(leases), func(i int) {
			if ok, err := f(i); err != nil || !ok {
				failed.Add(1)
			}
		})
		return float64(len(leases)) / time.Since(began).Seconds()
	}
	acquires := rate(func(i int) (bool, error) { return leases[i].Acquire(t.Context()) })
	churns, stop := churn(t, s)
	time.Sleep(*loadHold) // a real engine
	stop()
	churned := float64(churns.Load()) / loadHold.Seconds()
	releases := rate(func(i int) (bool, error) { return true, leases[i].Release(t.Context()) })
	t.Logf("%d leases: %.0f acquires/s, %.0f acquires and releases/s beside all renewals, %.0f releases/s; %d lost, %d failed",
		len(leases), acquires, churned, releases, lost.Load(), failed.Load())
	if lost.Load() > 0 || failed.Load() > workers { // a machine that stands still fails the requests of one moment
		t.Errorf("%d leases were lost, and %d requests failed", lost.Load(), failed.Load())
	}
	if both := 2 / (1/acquires + 1/releases); both < *loadRate {
		t.Errorf("%.0f acquires and releases a second, want %.0f", both, *loadRate)
	}
}

// churn acquires and releases leases until stop is called. done counts the granted requests.
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
