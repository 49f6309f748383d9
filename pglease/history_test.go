package pglease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/pglease"
)

// A kind runs random requests of several clients, and returns their history. The second result is the
// number of renewals that took one exchange or, of clients that do not remember records, of requests.
type kind func(t *testing.T, seed uint64, name string, stores []*pglease.Store, requests int, d, patience time.Duration) (h *histories.History, renewals int)

// kinds are the two kinds of clients: those that load the record before each request, and those that
// start from the record that they remember.
var kinds = map[string]kind{
	"loading": func(t *testing.T, seed uint64, name string, stores []*pglease.Store, requests int, d, patience time.Duration) (*histories.History, int) {
		bounded := make([]lease.Store, len(stores))
		for i, s := range stores {
			bounded[i] = impatient{s, patience}
		}
		return histories.Run(t.Context(), seed, name, bounded, requests, d), requests
	},
	"remembering": func(t *testing.T, seed uint64, name string, stores []*pglease.Store, requests int, d, patience time.Duration) (h *histories.History, renewals int) {
		h = new(histories.History)
		exchanges := func(s lease.Store) lease.Store { return h.Store(impatient{s, patience}) }
		authorities, counts := make([]lease.Authority, len(stores)), make([]int, len(stores))
		for i, s := range stores {
			authorities[i] = whole{s.Through(exchanges, func(s lease.Store) lease.Store { return exact{exchanges(s), t, &counts[i]} })}
		}
		h.Run(t.Context(), seed, name, authorities, requests, d)
		for _, n := range counts {
			renewals += n
		}
		return h, renewals
	},
}

// clients returns a store for each of four clients.
func clients(t *testing.T, url string) []*pglease.Store {
	stores := make([]*pglease.Store, 4)
	for i := range stores {
		stores[i] = store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
	}
	return stores
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 50
	}
	stores := clients(t, shared.URL(shared.Database(t)))
	for what, run := range kinds {
		t.Run(what, func(t *testing.T) {
			first, exchanges, renewals, n := rand.Uint64(), 0, 0, 0
			// If the server stalls, leases end before they are renewed, so a run can have few renewals.
			for ; n < runs || renewals < runs && n < 10*runs; n++ {
				seed := first + uint64(n)
				h, renewed := run(t, seed, fmt.Sprint(what, "-", n), stores, 15, 6*time.Millisecond, time.Minute)
				if err := h.Check(histories.Options{OwnClock: true}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				exchanges, renewals = exchanges+h.Len(), renewals+renewed
			}
			t.Logf("%d histories of %d exchanges are linearizable", n, exchanges)
			if renewals < runs {
				t.Errorf("%d renewals in one exchange prove nothing", renewals)
			}
		})
	}
}

// A whole authority rounds three of four durations so that the server can count them.
type whole struct{ lease.Authority }

func (a whole) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Duration%4 > 0 {
		req.Duration = req.Duration.Truncate(time.Microsecond) + time.Microsecond
	}
	return a.Authority.Do(ctx, name, req)
}

// Histories are linearizable while connections are cut, while the server is killed and started
// again, and while it is paused and resumed.
func TestHistoriesUnderFaults(t *testing.T) {
	runs := 12
	if testing.Short() {
		runs = 3
	}
	server := ownServer(t)
	stores := clients(t, server.URL(server.Database(t)))
	for what, run := range kinds {
		t.Run(what, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			exchanges, faults := 0, map[string]int{}
			for i := range runs {
				done := make(chan *histories.History, 1)
				go func() {
					h, _ := run(t, seed+uint64(i), fmt.Sprint(what, "-", i), stores, 450, 100*time.Millisecond, 200*time.Millisecond)
					done <- h
				}()
				for range 4 {
					time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // a real engine
					faults[harm(server, t, r)]++
				}
				h := <-done
				if err := h.Check(histories.Options{OwnClock: true}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				exchanges += h.Len()
			}
			t.Logf("%d histories of %d exchanges are linearizable under %v", runs, exchanges, faults)
		})
	}
}

// An impatient store gives up a request after a while, without knowing whether the server carried
// it out.
type impatient struct {
	lease.Store
	patience time.Duration
}

func (s impatient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Load(ctx, name)
}

func (s impatient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Swap(ctx, name, old, next)
}
