package pglease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/pglease"
)

// checkHistories checks histories of four clients, whether requests first load the record or start from a
// remembered record. A client gives up a request when its patience is over.
func checkHistories(t *testing.T, url string, runs, requests int, d, patience time.Duration, harm func(*rand.Rand) string) {
	var loading []lease.Store
	var through []enginetest.Through
	for range 4 {
		s := store(t, pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), nil)
		loading = append(loading, enginetest.Impatient(s, patience))
		through = append(through, func(exchanges, renewals func(lease.Store) lease.Store) lease.Authority {
			return whole{s.Through(exchanges, renewals)}
		})
	}
	clock := histories.Options{OwnClock: true}
	t.Run("loading", func(t *testing.T) {
		enginetest.Histories(t, runs, clock, func(seed uint64, i int) *histories.History {
			return histories.Run(t.Context(), seed, fmt.Sprint("loading-", i), loading, requests, d)
		}, harm)
	})
	t.Run("remembering", func(t *testing.T) {
		var renewals atomic.Int64
		enginetest.Histories(t, runs, clock, func(seed uint64, i int) *histories.History {
			return enginetest.Remembering(t, seed, fmt.Sprint("remembering-", i), through, requests, d, patience, &renewals)
		}, harm)
		if n := renewals.Load(); n < int64(runs)/2 {
			t.Errorf("%d renewals in one exchange prove nothing", n)
		}
	})
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 50
	}
	checkHistories(t, shared.URL(shared.Database(t)), runs, 15, 6*time.Millisecond, time.Minute, nil)
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
	server := ownServer(t, "fsync=off")
	checkHistories(t, server.URL(server.Database(t)), runs, 450, 100*time.Millisecond, 200*time.Millisecond, func(r *rand.Rand) string { return harm(server, t, r) })
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
