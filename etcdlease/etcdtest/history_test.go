package etcdtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
)

// checkHistories checks histories of clients at endpoints. The exchanges of those that remember records
// are recorded on the wire.
func checkHistories(t *testing.T, runs, requests int, d, patience time.Duration, endpoints []string, harm func(*rand.Rand) string) {
	var w wire
	c := &enginetest.Clients{Begin: func(_ string, h *histories.History) { w.history.Store(h) }, End: func() { w.history.Store(nil) }}
	for _, endpoint := range endpoints {
		c.Add(store(t, client(t, endpoint, w.option()), nil), patience)
	}
	enginetest.Histories(t, runs, histories.Options{}, func(seed uint64, i int) *histories.History {
		return c.Run(t.Context(), seed, i, fmt.Sprint(t.Name(), i), requests, d)
	}, harm)
}

// SPEC A2, A4: histories are linearizable in the order of the swaps.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	checkHistories(t, runs, 10, 6*time.Millisecond, time.Minute, slices.Repeat([]string{shared.Client}, 4), nil)
}

// Histories are linearizable while the server is paused, killed and started again, and connections are cut.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := newProxy(t, server.Client)
	underFaults(t, 120, []string{urlOf(p), urlOf(p), server.Client, server.Client}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// With three members, histories are linearizable while the leader crashes and returns, and members are
// cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	underFaults(t, 40, endpoints(members), func(r *rand.Rand) string { return harmCluster(t, r, members) })
}

func underFaults(t *testing.T, runs int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	checkHistories(t, runs, 200, 100*time.Millisecond, 200*time.Millisecond, endpoints, harm)
}
