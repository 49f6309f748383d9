package kubelease_test

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

// newClients makes a client for each address. A client gives up a request when its patience is
// over.
func newClients(t *testing.T, addresses []string, patience time.Duration) *clients {
	t.Helper()
	c := new(clients)
	for _, address := range addresses {
		s := store(t, client(t, address, c.wire.wrap), nil)
		c.stores = append(c.stores, impatientStore{s, patience})
		c.authorities = append(c.authorities, impatient{s.Authority(), patience})
	}
	return c
}

// run runs history i and checks it.
func (c *clients) run(t *testing.T, seed uint64, i, requests int, d time.Duration) {
	t.Helper()
	seed, name := seed+uint64(i), fmt.Sprint(objectOf(t), i)
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
	runs := 1000
	if testing.Short() {
		runs = 40
	}
	c := newClients(t, []string{shared.Address, shared.Address, shared.Address, shared.Address}, time.Minute)
	seed := rand.Uint64()
	for i := range runs {
		c.run(t, seed, i, 10, 12*time.Millisecond)
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable", runs, c.requests, c.exchanges)
}

// The histories find a client that reads from a stale cache, and a client that treats a write with
// an unknown outcome as not made.
func TestHistoriesFindPlantedBugs(t *testing.T) {
	t.Parallel()
	t.Run("stale cache", func(t *testing.T) {
		t.Parallel()
		stale := staleCaches()
		for i := range 50 {
			var stores []lease.Store
			for range 4 {
				stores = append(stores, store(t, client(t, shared.Address, stale), nil))
			}
			seed := rand.Uint64()
			if err := histories.Run(t.Context(), seed, fmt.Sprint(objectOf(t), i), stores, 10, 12*time.Millisecond).Check(histories.Options{}); err != nil {
				t.Logf("found in history %d: %v", i, err)
				return
			}
		}
		t.Error("not found in 50 histories")
	})
}

// Histories are linearizable under the following faults. The API server is paused, killed and
// started again. Its etcd is paused, so that writes that timed out are applied later. Connections
// are cut or die silently. etcd is compacted.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	p := newProxy(t, server.Address)
	underFaults(t, 100, []string{p.address, p.address, server.Address, server.Address}, func(r *rand.Rand) string { return harm(t, r, server, p) })
}

// underFaults checks histories while the function harm injects faults. Each client uses its own
// address.
func underFaults(t *testing.T, runs int, addresses []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 25
	}
	c := newClients(t, addresses, 500*time.Millisecond)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]int{}
	for i := range runs {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(t, seed, i, 100, 200*time.Millisecond)
		}()
		for range 3 {
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond) // a real engine
			faults[harm(r)]++
		}
		<-done
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable under %v", runs, c.requests, c.exchanges, faults)
	if c.exchanges < 50*runs {
		t.Error("that proves nothing")
	}
}

// An impatient authority gives up a request after a while, without knowing whether the server
// carried it out.
type impatient struct {
	lease.Authority
	patience time.Duration
}

func (a impatient) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	return a.Authority.Do(ctx, name, req)
}

// An impatientStore gives up an exchange after a while, without knowing whether the server carried
// it out.
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
