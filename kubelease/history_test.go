package kubelease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories by the clocks of the clients.
func checkHistories(t *testing.T, target enginetest.Target, runs int, term time.Duration) {
	t.Parallel()
	linearize.TestHistories(t, target, func(t testing.TB, address string) enginetest.Store { return store(t, client(t, address), nil) },
		&linearize.TestOptions{
			Runs: runs, Workload: linearize.Workload{Term: term}, Options: linearize.Options{Observed: true, Late: true},
			Name: func(seed uint64) string { return fmt.Sprint(objectOf(t), seed) },
		})
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(shared.Address, 4), 1000, 12*time.Millisecond)
}

// Histories are linearizable while the API server is paused, killed and started again, its etcd is paused,
// so that writes that timed out are applied later, or compacted, and connections fail.
func TestHistoriesUnderFaults(t *testing.T) {
	checkHistories(t, underFaults(t), 400, 200*time.Millisecond)
}
