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

// SPEC A2: every history is linearizable in the time of the server, whether requests first load the
// record or start from a remembered record.
func TestHistories(t *testing.T) {
	runs, clients := 1000, 4
	if testing.Short() {
		runs = 50
	}
	url := shared.URL(shared.Database(t))
	stores := make([]*pglease.Store, clients)
	for i := range stores {
		stores[i] = store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
		if i%2 == 1 {
			stores[i].TogetherOnly()
		}
	}
	t.Run("loading", func(t *testing.T) {
		first, exchanges := rand.Uint64(), 0
		bare := make([]lease.Store, clients)
		for i, s := range stores {
			bare[i] = s
		}
		for i := range runs {
			seed := first + uint64(i)
			h := histories.Run(t.Context(), seed, fmt.Sprint("loading-", i), bare, 10, 6*time.Millisecond)
			if err := h.Check(histories.Options{OwnClock: true}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			exchanges += h.Len()
		}
		t.Logf("%d histories of %d exchanges are linearizable", runs, exchanges)
	})
	t.Run("remembering", func(t *testing.T) {
		first, exchanges, renewals := rand.Uint64(), 0, 0
		// If the server stalls, leases end before they are renewed, so a run can have few renewals.
		n := 0
		for ; n < runs || renewals < runs && n < 10*runs; n++ {
			seed := first + uint64(n)
			h, renewed := remembering(t, seed, fmt.Sprint("remembering-", n), stores, 15, 6*time.Millisecond, 0)
			if err := h.Check(histories.Options{OwnClock: true}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			exchanges, renewals = exchanges+h.Len(), renewals+renewed
		}
		t.Logf("%d histories of %d exchanges are linearizable, with %d renewals in one", n, exchanges, renewals)
		if renewals < runs {
			t.Errorf("%d renewals prove nothing", renewals)
		}
	})
}

// remembering lets clients send random requests about one lease, each client through an authority
// that remembers records. It returns the history, and the number of renewals that took one
// exchange.
func remembering(t *testing.T, seed uint64, name string, stores []*pglease.Store, requests int, d, patience time.Duration) (h *histories.History, renewals int) {
	h = new(histories.History)
	exchanges := func(s lease.Store) lease.Store {
		if patience > 0 {
			s = impatient{s, patience}
		}
		return h.Store(s)
	}
	authorities, counts := make([]lease.Authority, len(stores)), make([]int, len(stores))
	for i, s := range stores {
		authorities[i] = whole{s.Through(exchanges, func(s lease.Store) lease.Store { return exact{exchanges(s), t, &counts[i]} })}
	}
	h.Run(t.Context(), seed, name, authorities, requests, d)
	for _, n := range counts {
		renewals += n
	}
	return h, renewals
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
	const patience = 200 * time.Millisecond
	runs := 12
	if testing.Short() {
		runs = 3
	}
	server := ownServer(t)
	database := server.Database(t)
	stores := make([]*pglease.Store, 4)
	bounded := make([]lease.Store, len(stores))
	for i := range stores {
		stores[i] = store(t, pool(t, server.URL(database), func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
		bounded[i] = impatient{stores[i], patience}
		if i%2 == 1 {
			stores[i].TogetherOnly()
		}
	}
	for what, run := range map[string]func(ctx context.Context, seed uint64, name string) *histories.History{
		"loading": func(ctx context.Context, seed uint64, name string) *histories.History {
			return histories.Run(ctx, seed, name, bounded, 300, 100*time.Millisecond)
		},
		"remembering": func(ctx context.Context, seed uint64, name string) *histories.History {
			h, _ := remembering(t, seed, name, stores, 600, 100*time.Millisecond, patience)
			return h
		},
	} {
		t.Run(what, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			exchanges, faults := 0, map[string]int{}
			for i := range runs {
				done := make(chan *histories.History, 1)
				go func() { done <- run(t.Context(), seed+uint64(i), fmt.Sprint(what, "-", i)) }()
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
