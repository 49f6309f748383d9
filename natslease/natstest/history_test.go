package natstest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
)

// checkHistories checks histories of clients at proxies, whose data the wire reads.
func checkHistories(t *testing.T, w *wire, proxies []*enginetest.Proxy, runs, requests int, d, patience time.Duration, harm func(*rand.Rand) string) {
	c := &enginetest.Clients{Begin: func(name string, h *histories.History) { w.begin(key(name), h) }, End: w.end}
	for _, p := range proxies {
		js := client(t, "nats://"+p.Addr(), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)) // else most requests find no connection
		c.Add(store(t, js, nil), patience)
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
	w := new(wire)
	p := enginetest.NewProxy(t, shared.Client, w.connection)
	checkHistories(t, w, []*enginetest.Proxy{p, p, p, p}, runs, 10, 6*time.Millisecond, time.Minute, nil)
}

// SPEC A2, A4: the same holds on three servers, where a write takes longer and several are under way at once.
func TestHistoriesOfACluster(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 10
	}
	w := new(wire)
	checkHistories(t, w, newCluster(t, 3).proxies(t, w), runs, 10, 30*time.Millisecond, time.Minute, nil)
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	w := new(wire)
	p, other := enginetest.NewProxy(t, server.Client, w.connection), enginetest.NewProxy(t, server.Client, w.connection)
	underFaults(t, w, []*enginetest.Proxy{p, p, other, other}, 120, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// In a cluster of three members, histories are linearizable while the leader is stopped, steps down or
// is cut off, and while another member is cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	w := new(wire)
	js := client(t, strings.Join(c.endpoints(), ","))
	underFaults(t, w, c.proxies(t, w), 40, func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}

func underFaults(t *testing.T, w *wire, proxies []*enginetest.Proxy, runs int, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	checkHistories(t, w, proxies, runs, 200, 100*time.Millisecond, 200*time.Millisecond, harm)
}

// proxies returns a proxy in front of each member, and one more in front of the first.
func (c *cluster) proxies(t *testing.T, w *wire) (proxies []*enginetest.Proxy) {
	for i := range 4 {
		proxies = append(proxies, enginetest.NewProxy(t, c.members[i%3].Client, w.connection))
	}
	return proxies
}
