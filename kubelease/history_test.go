package kubelease_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
)

// checkHistories checks histories of clients at addresses. The exchanges of those that remember records
// are recorded on the wire.
func checkHistories(t *testing.T, runs, requests int, d, patience time.Duration, addresses []string, harm func(*rand.Rand) string) {
	var w wire
	c := &enginetest.Clients{Begin: func(_ string, h *histories.History) { w.history.Store(h) }, End: func() { w.history.Store(nil) }}
	for _, address := range addresses {
		c.Add(store(t, client(t, address, w.wrap), nil), patience)
	}
	enginetest.Histories(t, runs, histories.Options{}, func(seed uint64, i int) *histories.History {
		return c.Run(t.Context(), seed, i, fmt.Sprint(objectOf(t), i), requests, d)
	}, harm)
}

// SPEC A2, A4: histories are linearizable in the order of the swaps.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 40
	}
	checkHistories(t, runs, 10, 12*time.Millisecond, time.Minute, slices.Repeat([]string{shared.Address}, 4), nil)
}

// Histories are linearizable while the API server is paused, killed and started again, its etcd is paused,
// so that writes that timed out are applied later, or compacted, and connections are cut or die silently.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	runs := 100
	if testing.Short() {
		runs = 4
	}
	server := newServer(t)
	p := enginetest.NewProxy(t, server.Address, nil)
	addresses := []string{p.Addr(), p.Addr(), server.Address, server.Address}
	checkHistories(t, runs, 100, 200*time.Millisecond, 500*time.Millisecond, addresses, func(r *rand.Rand) string { return harm(t, r, server, p) })
}
