package kubelease_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// checkHistories checks histories of clients at addresses.
func checkHistories(t *testing.T, runs int, w linearize.Workload, addresses []string, harm func(*rand.Rand) string) {
	clients := enginetest.Clients(len(addresses), func(i int) enginetest.Store { return store(t, client(t, addresses[i]), nil) })
	object := objectOf(t)
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, fmt.Sprint(object, seed)
		return linearize.Run(t.Context(), clients, &linearize.Options{Observed: true, Late: true}, &w)
	}, harm)
}

// SPEC A2, A4: histories are linearizable by the clocks of the clients.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 40
	}
	checkHistories(t, runs, linearize.Workload{Term: 12 * time.Millisecond, Timeout: time.Minute}, slices.Repeat([]string{shared.Address}, 4), nil)
}

// Histories are linearizable while the API server is paused, killed and started again, its etcd is paused,
// so that writes that timed out are applied later, or compacted, and connections are cut or die silently.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	runs := 400
	if testing.Short() {
		runs = 20
	}
	server := newServer(t)
	p := enginetest.NewProxy(t, server.Address, nil)
	addresses := []string{p.Addr(), p.Addr(), server.Address, server.Address}
	checkHistories(t, runs, linearize.Workload{Term: 200 * time.Millisecond, Timeout: 500 * time.Millisecond}, addresses, func(r *rand.Rand) string { return harm(t, r, server, p) })
}
