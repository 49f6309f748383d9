package pglease_test

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

var (
	loadLeases = flag.Int("load.leases", 300, "leases that TestLoad holds at once")
	loadHold   = flag.Duration("load.hold", 4*time.Second, "for how long TestLoad acquires and releases other leases meanwhile")
	loadRate   = flag.Float64("load.rate", 0, "acquires and releases a second below which TestLoad fails")
)

// One process holds many leases of 10 s through a pool of 16, on a server that syncs every commit.
// It keeps them while it acquires and releases other leases. No lease may be lost. The full run is:
//
//	go test -run TestLoad -v -timeout 30m -load.leases 10000 -load.hold 25s -load.rate 400
func TestLoad(t *testing.T) {
	server := ownServer(t, "fsync=on")
	s := store(t, pool(t, server.URL(server.Database(t, pglease.Tables)), func(c *pgxpool.Config) { c.MaxConns = 16 }), nil)
	churn := func() {
		var done atomic.Int64
		until := time.Now().Add(*loadHold)
		shorthand.Together(32, 32, func(i int) {
			for time.Now().Before(until) {
				for _, req := range []lease.Request{acquire(idA, 10*time.Second), release(idA)} {
					if _, err := s.Authority().Do(t.Context(), fmt.Sprint("churn/", i), req); err != nil {
						t.Errorf("%v: %v", req.Action, err)
						return
					}
					done.Add(1)
				}
			}
		})
		rate := float64(done.Load()) / loadHold.Seconds()
		if t.Logf("%.0f acquires and releases/s beside all renewals", rate); rate < *loadRate {
			t.Errorf("%.0f acquires and releases a second, want %.0f", rate, *loadRate)
		}
	}
	enginetest.Load{Leases: *loadLeases, Hold: time.Second, Held: churn}.Run(t, s)
}
