package pglease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/witness"
)

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	histories, clients := 1000, 4
	if testing.Short() {
		histories = 50
	}
	url := shared.url(shared.database(t))
	stores := make([]lease.Store, clients)
	for i := range stores {
		stores[i] = store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
	}
	first, exchanges := rand.Uint64(), 0
	for i := range histories {
		seed := first + uint64(i)
		h := witness.Run(t.Context(), seed, fmt.Sprint("history-", i), stores, 10, 6*time.Millisecond)
		if err := h.Check(witness.Options{OwnClock: true}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		exchanges += h.Len()
	}
	t.Logf("%d histories of %d exchanges are linearizable", histories, exchanges)
}

// The same while connections are cut, the server is killed and started again, and while it is
// stopped and continued.
func TestHistoriesUnderFaults(t *testing.T) {
	histories := 12
	if testing.Short() {
		histories = 3
	}
	server := ownServer(t)
	database := server.database(t)
	stores := make([]lease.Store, 4)
	for i := range stores {
		stores[i] = store(t, pool(t, server.url(database), func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	exchanges, faults := 0, map[string]int{}
	for i := range histories {
		name := fmt.Sprint("history-", i)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *witness.History, 1)
		bounded := make([]lease.Store, len(stores))
		for i, s := range stores {
			bounded[i] = impatient{s, 200 * time.Millisecond}
		}
		go func() { done <- witness.Run(ctx, seed+uint64(i), name, bounded, 300, 100*time.Millisecond) }()
		for range 4 {
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // a real engine
			faults[server.harm(t, r)]++
		}
		h := <-done
		cancel()
		if err := h.Check(witness.Options{OwnClock: true}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		exchanges += h.Len()
	}
	t.Logf("%d histories of %d exchanges are linearizable under %v", histories, exchanges, faults)
}

// impatient gives up after a while, without knowing what became of the request.
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
