package natstest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories of clients at addresses.
func checkHistories(t *testing.T, addresses []string, runs int, w linearize.Workload, harm func(*rand.Rand) string) {
	clients := enginetest.Clients(len(addresses), func(i int) enginetest.Store {
		// With longer pauses, most requests would find no connection.
		return store(t, client(t, "nats://"+addresses[i], nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)), nil)
	})
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
	checkHistories(t, slices.Repeat([]string{shared.Client}, 4), runs, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, nil)
}

// SPEC A2, A4: the same holds on three servers, where a write takes longer and several are under way at once.
func TestHistoriesOfACluster(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 10
	}
	checkHistories(t, newCluster(t, 3).four(), runs, linearize.Workload{Term: 30 * time.Millisecond, Timeout: time.Minute}, nil)
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := enginetest.NewProxy(t, server.Client, nil)
	underFaults(t, []string{p.Addr(), p.Addr(), server.Client, server.Client}, 1000, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// In a cluster of three members, histories are linearizable while the leader is stopped, steps down or
// is cut off, and while another member is cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	js := client(t, strings.Join(c.endpoints(), ","))
	underFaults(t, c.four(), 400, func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}

func underFaults(t *testing.T, addresses []string, runs int, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20
	}
	checkHistories(t, addresses, runs, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, harm)
}

// four returns the address of each of three members, and that of the first once more.
func (c *cluster) four() (addresses []string) {
	for i := range 4 {
		addresses = append(addresses, c.members[i%3].Client)
	}
	return addresses
}
