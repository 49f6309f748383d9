package etcdtest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories of clients at endpoints.
func checkHistories(t *testing.T, runs int, w linearize.Workload, endpoints []string, harm func(*rand.Rand) string) {
	clients := enginetest.Clients(len(endpoints), func(i int) enginetest.Store { return store(t, client(t, endpoints[i]), nil) })
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, name
		return linearize.Run(t.Context(), clients, &linearize.Options{Observed: true, Late: true}, &w)
	}, harm)
}

// SPEC A2, A4: histories are linearizable by the clocks of the clients.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	checkHistories(t, runs, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, slices.Repeat([]string{shared.Client}, 4), nil)
}

// Histories are linearizable while the server is paused, killed and started again, and connections are cut.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := newProxy(t, server.Client)
	underFaults(t, 1000, []string{urlOf(p), urlOf(p), server.Client, server.Client}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// With three members, histories are linearizable while the leader crashes and returns, and members are
// cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	underFaults(t, 400, endpoints(members), func(r *rand.Rand) string { return harmCluster(t, r, members) })
}

func underFaults(t *testing.T, runs int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	checkHistories(t, runs, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, endpoints, harm)
}
