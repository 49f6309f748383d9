package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// openAt makes a store for a history. With longer pauses, most requests would find no connection.
func openAt(t testing.TB, endpoint string) enginetest.Store {
	return store(t, client(t, endpoint, nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)), nil)
}

// checkHistories checks histories by the clocks of the clients.
func checkHistories(t *testing.T, target enginetest.Target, o linearize.TestOptions) {
	t.Parallel()
	o.Options = linearize.Options{Observed: true, Late: true}
	linearize.TestHistories(t, target, openAt, &o)
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(shared.url(), 4), linearize.TestOptions{})
}

// SPEC A2, A4: the same holds on three servers, where a write takes longer and several are under way at once.
func TestHistoriesOfACluster(t *testing.T) {
	target := enginetest.Target{Endpoints: newCluster(t, 3).four()}
	checkHistories(t, target, linearize.TestOptions{Runs: 1000, Workload: linearize.Workload{Term: 30 * time.Millisecond}})
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while its connections fail.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	checkHistories(t, underFaults(t), linearize.TestOptions{Runs: 1000})
}

// In a cluster of three members, histories are linearizable while the leader is stopped, steps down or
// is cut off, and while another member is cut off.
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
// is stopped, steps down or is cut off, and while another member is cut off.
func TestHoldersAtAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	target := clusterUnderFaults(t)
	target.Endpoints = target.Endpoints[:3]
	enginetest.TestHolders(t, target, nil)
}

// four returns the URL of each of three members, and that of the first once more.
func (c *cluster) four() []string {
	all := c.endpoints()
	return append(all, all[0])
}
