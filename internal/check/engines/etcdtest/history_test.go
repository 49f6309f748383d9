package etcdtest

import (
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories by the clocks of the clients.
func checkHistories(t *testing.T, target enginetest.Target, o linearize.TestOptions) {
	t.Parallel()
	o.Options = linearize.Options{Observed: true, Late: true}
	linearize.TestHistories(t, target, nil, &o)
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(storeURL(shared.Client), 4), linearize.TestOptions{})
}

// Histories are linearizable while the server is paused, killed and started again, and its connections fail.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	checkHistories(t, underFaults(t), linearize.TestOptions{Runs: 1000})
}

// With three members, histories are linearizable while the leader crashes and returns, and members are
// cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	checkHistories(t, clusterUnderFaults(t), linearize.TestOptions{Runs: 400})
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections fail,
// while holders are paused, resumed and killed. No stale write passes the guard, and no holder believes
// that it holds the lease while another has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, underFaults(t), nil)
}

// SPEC G1, G2, H9: in a cluster of three members, no stale write passes the guard while the leader
// crashes and comes back, and while members are cut off.
func TestHoldersAtAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, clusterUnderFaults(t), nil)
}
