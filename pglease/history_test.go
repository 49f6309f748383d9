package pglease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/pglease"
)

// checkHistories checks histories in the time of the server.
func checkHistories(t *testing.T, target enginetest.Target, runs int) {
	linearize.TestHistories(t, target, nil, &linearize.TestOptions{Runs: runs, Options: linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}})
}

// underFaults starts a server with a database that fails.
func underFaults(t *testing.T) enginetest.Target {
	server := ownServer(t, "fsync=off")
	database := server.Database(t, pglease.Tables)
	return enginetest.UnderFaults(t, server, func(addr string) string { return pgserver.URL(addr, database) })
}

// SPEC A2: every history is linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(shared.URL(shared.Database(t, pglease.Tables)), 4), 2000)
}

// Histories are linearizable while connections fail, while the server is killed and started again, and while
// it is paused and resumed.
func TestHistoriesUnderFaults(t *testing.T) {
	checkHistories(t, underFaults(t), 300)
}

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write
// passes the guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	enginetest.TestHolders(t, underFaults(t), nil)
}
