package pglease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/pglease"
)

// checkHistories checks histories of four clients.
func checkHistories(t *testing.T, url string, runs int, w linearize.Workload, harm func(*rand.Rand) string) {
	clients := enginetest.Clients(4, func(int) enginetest.Store { return store(t, pool(t, url), nil) })
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, name
		return linearize.Run(t.Context(), clients, &linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}, &w)
	}, harm)
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	checkHistories(t, shared.URL(shared.Database(t)), runs, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, nil)
}

// Histories are linearizable while connections are cut, while the server is killed and started
// again, and while it is paused and resumed.
func TestHistoriesUnderFaults(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	server := ownServer(t, "fsync=off")
	checkHistories(t, server.URL(server.Database(t)), runs, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, func(r *rand.Rand) string { return harm(server, t, r) })
}

// openStore makes the store of a process that holds a lease.
func openStore(url string) (processes.Store, error) {
	p, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return nil, err
	}
	return pglease.New(p, nil)
}

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write
// passes the guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	server := ownServer(t, "fsync=off")
	url := server.URL(server.Database(t))
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: []string{url, url, url}, Duration: time.Second}, rounds,
		func(r *rand.Rand) string { return harm(server, t, r) })
}
