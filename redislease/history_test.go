package redislease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// SPEC A2: every history is linearizable in the time of the server, whether requests first load the
// record or start from a remembered record.
func TestHistories(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 50
	}
	stores := make([]*redislease.Store, 4)
	for i := range stores {
		stores[i] = store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	}
	t.Run("loading", func(t *testing.T) {
		first, exchanges := rand.Uint64(), 0
		for i := range runs {
			seed := first + uint64(i)
			h := histories.Run(t.Context(), seed, fmt.Sprint("loading-", i), bare(stores, 0), 10, 6*time.Millisecond)
			if err := h.Check(histories.Options{OwnClock: true}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			exchanges += h.Len()
		}
		t.Logf("%d histories of %d exchanges are linearizable", runs, exchanges)
	})
	t.Run("remembering", func(t *testing.T) {
		first, exchanges, renewals := rand.Uint64(), 0, 0
		// If the server stalls, leases end before they are renewed, so a run can have few renewals.
		n := 0
		for ; n < runs || renewals < runs && n < 10*runs; n++ {
			seed := first + uint64(n)
			h, renewed := remembering(t, seed, fmt.Sprint("remembering-", n), stores, 15, 6*time.Millisecond, 0)
			if err := h.Check(histories.Options{OwnClock: true}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			exchanges, renewals = exchanges+h.Len(), renewals+renewed
		}
		t.Logf("%d histories of %d exchanges are linearizable, with %d renewals in one", n, exchanges, renewals)
		if renewals < runs {
			t.Errorf("%d renewals prove nothing", renewals)
		}
	})
}

// bare returns the stores as lease.Stores. If patience is not zero, the stores give up a request
// after this time.
func bare(stores []*redislease.Store, patience time.Duration) []lease.Store {
	all := make([]lease.Store, len(stores))
	for i, s := range stores {
		all[i] = s
		if patience > 0 {
			all[i] = impatient{s, patience}
		}
	}
	return all
}

// remembering lets clients send random requests about one lease, each client through an authority
// that remembers records. It returns the history, and the number of renewals that took one
// exchange.
func remembering(t *testing.T, seed uint64, name string, stores []*redislease.Store, requests int, d, patience time.Duration) (h *histories.History, renewals int) {
	h = new(histories.History)
	exchanges := func(s lease.Store) lease.Store {
		if patience > 0 {
			s = impatient{s, patience}
		}
		return h.Store(s)
	}
	authorities, counts := make([]lease.Authority, len(stores)), make([]int, len(stores))
	for i, s := range stores {
		authorities[i] = s.Through(exchanges, func(s lease.Store) lease.Store { return exact{exchanges(s), t, &counts[i]} })
	}
	h.Run(t.Context(), seed, name, authorities, requests, d)
	for _, n := range counts {
		renewals += n
	}
	return h, renewals
}

// patience is the time that a client waits for an answer in tests with faults.
const patience = 200 * time.Millisecond

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	server := ownServer(t, redisserver.Durable...)
	front := proxy(t, server.Addr())
	underFaults(t, 35, front, nil, func(r *rand.Rand) string { return harm(t, server, front, r) })
}

// Histories are linearizable while the primary is killed and its replica is promoted. The replica
// has acknowledged every request that was answered, so no answered request is lost.
func TestHistoriesUnderFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	underFaults(t, 15, p.front, &redislease.Options{Replicas: 1, ReplicaTimeout: patience}, func(r *rand.Rand) string { // a server that it starts outlives the subtest
		if r.IntN(3) == 0 {
			p.front.Cut()
			return "cut connections"
		}
		old := p.primary
		old.Kill()
		p.failOver(t)
		p.primary = p.replica
		p.link = proxy(t, p.primary.Addr())
		p.replica = newReplica(t, p.primary, p.link)
		return "failover"
	})
}

// underFaults checks the given number of histories of each kind. During each history, four faults
// happen.
func underFaults(t *testing.T, runs int, front *redisserver.Proxy, o *redislease.Options, fault func(*rand.Rand) string) {
	if testing.Short() {
		runs = 2
	}
	stores := make([]*redislease.Store, 4)
	for i := range stores {
		stores[i] = store(t, client(t, front.Addr()), o)
	}
	for what, run := range map[string]func(ctx context.Context, seed uint64, name string, requests int) *histories.History{
		"loading": func(ctx context.Context, seed uint64, name string, requests int) *histories.History {
			return histories.Run(ctx, seed, name, bare(stores, patience), requests, 100*time.Millisecond)
		},
		"remembering": func(ctx context.Context, seed uint64, name string, requests int) *histories.History {
			h, _ := remembering(t, seed, name, stores, requests, 100*time.Millisecond, patience)
			return h
		},
	} {
		t.Run(what, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			exchanges, faults := 0, map[string]int{}
			for i := range runs {
				done := make(chan *histories.History, 1)
				go func() { done <- run(t.Context(), seed+uint64(i), fmt.Sprint(what, "-", i), 600) }()
				for range 4 {
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // a real engine
					faults[fault(r)]++
				}
				h := <-done
				if err := h.Check(histories.Options{OwnClock: true}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				exchanges += h.Len()
			}
			t.Logf("%d histories of %d exchanges are linearizable under %v", runs, exchanges, faults)
		})
	}
}

// harm injects a random fault into a server or its connections, and returns the name of the fault.
func harm(t testing.TB, s *redisserver.Server, front *redisserver.Proxy, r *rand.Rand) string {
	t.Helper()
	switch r.IntN(4) {
	case 0:
		s.Pause()
		time.Sleep(time.Duration(100+r.IntN(400)) * time.Millisecond) // a real engine
		s.Resume()
		return "stop and continue"
	case 1:
		s.Kill()
		if err := s.Start(); err != nil {
			t.Error(err)
		}
		return "kill and restart"
	case 2:
		front.Silence()
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond) // a real engine
		front.Heal()
		return "silent connections"
	}
	front.Cut()
	return "cut connections"
}

// An impatient store gives up a request after a while, without knowing whether the server carried
// it out.
type impatient struct {
	lease.Store
	patience time.Duration
}

func (s impatient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Load(ctx, name)
}

func (s impatient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Swap(ctx, name, old, next)
}
