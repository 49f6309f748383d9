package etcdtest

import (
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories by the clocks of the clients.
func checkHistories(t *testing.T, target enginetest.Target, runs int) {
	linearize.TestHistories(t, target, nil, &linearize.TestOptions{Runs: runs, Options: linearize.Options{Observed: true, Late: true}})
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	t.Parallel()
	checkHistories(t, enginetest.At(storeURL(shared.Client), 4), 0)
}

// Histories are linearizable under the faults of a server, and under those of a cluster.
func TestHistoriesUnderFaults(t *testing.T) { underFaults(t, checkHistories) }

// SPEC G1, G2, H9: under the same faults, holders are paused, resumed and killed. No stale write passes the
// guard, and no holder believes that it holds the lease while another has it.
func TestHoldersAtServersUnderFaults(t *testing.T) {
	underFaults(t, func(t *testing.T, target enginetest.Target, _ int) { enginetest.TestHolders(t, target, nil) })
}
