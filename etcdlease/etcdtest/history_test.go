package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
)

// clients are several clients of one lease. In every second history, the clients use the
// authorities of their stores, which remember records. The exchanges of such an authority are
// recorded on the wire.
type clients struct {
	stores      []lease.Store
	authorities []lease.Authority
	wire        wire
	exchanges   int
	requests    int
}

// newClients makes a client for each endpoint. A client gives up a request when its patience is
// over.
func newClients(t *testing.T, endpoints []string, patience time.Duration) *clients {
	t.Helper()
	c := new(clients)
	for _, endpoint := range endpoints {
		s := store(t, client(t, endpoint, c.wire.option()), nil)
		c.stores = append(c.stores, impatientStore{s, patience})
		c.authorities = append(c.authorities, impatient{s.Authority(), patience})
	}
	return c
}

// run runs history i and checks it.
func (c *clients) run(t *testing.T, seed uint64, i, requests int, d time.Duration) {
	t.Helper()
	seed, name := seed+uint64(i), fmt.Sprint(t.Name(), i)
	var h *histories.History
	if i%2 == 0 {
		h = histories.Run(t.Context(), seed, name, c.stores, requests, d)
	} else {
		h = new(histories.History)
		c.wire.history.Store(h)
		h.Run(t.Context(), seed, name, c.authorities, requests, d)
		c.wire.history.Store(nil)
	}
	if err := h.Check(histories.Options{}); err != nil {
		t.Errorf("history %d, seed %d: %v", i, seed, err)
	}
	c.exchanges += h.Len()
	c.requests += requests * len(c.stores)
}

// SPEC A2, A4: histories are linearizable in the order of the swaps.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	c := newClients(t, []string{shared.Client, shared.Client, shared.Client, shared.Client}, time.Minute)
	seed := rand.Uint64()
	for i := range runs {
		c.run(t, seed, i, 10, 6*time.Millisecond)
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable", runs, c.requests, c.exchanges)
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := newProxy(t, server.Client)
	underFaults(t, 120, []string{p.url, p.url, server.Client, server.Client}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// In a cluster of three members, histories are linearizable while the leader crashes and comes
// back, and while members are cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	underFaults(t, 40, endpoints(members), func(r *rand.Rand) string { return harmCluster(t, r, members) })
}

// underFaults checks histories while the function harm injects faults. Each client uses its own
// endpoint.
func underFaults(t *testing.T, runs int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	c := newClients(t, endpoints, 200*time.Millisecond)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]int{}
	for i := range runs {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(t, seed, i, 200, 100*time.Millisecond)
		}()
		for range 4 {
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // a real engine
			faults[harm(r)]++
		}
		<-done
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable under %v", runs, c.requests, c.exchanges, faults)
	if c.exchanges < 50*runs {
		t.Error("that proves nothing")
	}
}

// An impatient authority gives up a request after a while, without knowing whether etcd carried it
// out.
type impatient struct {
	lease.Authority
	patience time.Duration
}

func (a impatient) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	return a.Authority.Do(ctx, name, req)
}

// An impatientStore gives up an exchange after a while, without knowing whether etcd carried it
// out.
type impatientStore struct {
	lease.Store
	patience time.Duration
}

func (s impatientStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Load(ctx, name)
}

func (s impatientStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Swap(ctx, name, old, next)
}
