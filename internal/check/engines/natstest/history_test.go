package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories of four clients by their clocks.
func checkHistories(t *testing.T, target enginetest.Target, o linearize.TestOptions) {
	if len(target.Endpoints) < 4 {
		target.Endpoints = append(target.Endpoints, target.Endpoints[0])
	}
	o.Options = linearize.Options{Observed: true, Late: true}
	linearize.TestHistories(t, target, func(t testing.TB, endpoint string) enginetest.Store {
		// With longer pauses, most requests would find no connection.
		return store(t, client(t, endpoint, nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)), nil)
	}, &o)
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	t.Parallel()
	checkHistories(t, enginetest.At(shared.url(), 4), linearize.TestOptions{})
}

// SPEC A2, A4: the same holds on three servers, where a write takes longer and several are under way at once.
func TestHistoriesOfACluster(t *testing.T) {
	t.Parallel()
	target := enginetest.Target{Endpoints: newCluster(t).endpoints()}
	checkHistories(t, target, linearize.TestOptions{Runs: 1000, Workload: linearize.Workload{Term: 30 * time.Millisecond}})
}

// Histories are linearizable under the faults of a server, and under those of a cluster.
func TestHistoriesUnderFaults(t *testing.T) {
	underFaults(t, func(t *testing.T, target enginetest.Target, histories int) {
		checkHistories(t, target, linearize.TestOptions{Runs: histories})
	})
}

// SPEC G1, G2, H9: under the same faults, holders are paused, resumed and killed. No stale write passes the
// guard, and no holder believes that it holds the lease while another has it.
func TestHoldersAtServersUnderFaults(t *testing.T) {
	underFaults(t, func(t *testing.T, target enginetest.Target, _ int) { enginetest.TestHolders(t, target, nil) })
}
