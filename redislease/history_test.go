package redislease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// clients returns the authorities of four clients.
func clients(open func() *redislease.Store) []lease.Authority {
	return enginetest.Clients(4, func(int) enginetest.Store { return open() })
}

// history makes a history and checks it.
func history(ctx context.Context, clients []lease.Authority, w linearize.Workload) (requests int, err error) {
	return linearize.Run(ctx, clients, &linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}, &w)
}

// checkHistories checks histories of four clients.
func checkHistories(t *testing.T, open func() *redislease.Store, runs int, w linearize.Workload, harm func(*rand.Rand) string) {
	all := clients(open)
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, name
		return history(t.Context(), all, w)
	}, harm)
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	checkHistories(t, func() *redislease.Store {
		return store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	}, runs, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, nil)
}

// patience is the time that a client waits for an answer in tests with faults.
const patience = 200 * time.Millisecond

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	server := ownServer(t, redisserver.Durable...)
	front := proxy(t, server.Addr())
	underFaults(t, 500, front, nil, func(r *rand.Rand) string { return harm(t, server, front, r) })
}

// Histories are linearizable while the primary is killed and its replica is promoted. The replica
// has acknowledged every request that was answered, so no answered request is lost.
func TestHistoriesUnderFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	underFaults(t, 200, p.front, &redislease.Options{Replicas: 1, ReplicaTimeout: patience}, func(r *rand.Rand) string {
		if r.IntN(3) == 0 {
			p.front.Cut()
			return "cut connections"
		}
		p.primary.Kill()
		p.failOver(t)
		p.primary = p.replica
		p.replica = newReplica(t, p.primary, p.primary.Addr())
		return "failover"
	})
}

func underFaults(t *testing.T, runs int, front *enginetest.Proxy, o *redislease.Options, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20
	}
	open := func() *redislease.Store { return store(t, client(t, front.Addr()), o) }
	checkHistories(t, open, runs, linearize.Workload{Term: 100 * time.Millisecond, Timeout: patience}, harm)
}

// harm injects a random fault into a server or its connections, and returns the name of the fault.
func harm(t testing.TB, s *redisserver.Server, front *enginetest.Proxy, r *rand.Rand) string {
	t.Helper()
	switch r.IntN(4) {
	case 0:
		if err := s.Pause(time.Duration(100+r.IntN(400)) * time.Millisecond); err != nil {
			t.Error(err)
		}
		return "stop and continue"
	case 1:
		s.Kill()
		if err := s.Start(); err != nil {
			t.Error(err)
		}
		return "kill and restart"
	case 2:
		front.Isolate()
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond) // a real engine
		front.Heal()
		return "silent connections"
	}
	front.Cut()
	return "cut connections"
}

// openStore makes the store of a process that holds a lease.
func openStore(addr string) (processes.Store, error) {
	return redislease.New(redis.NewClient(&redis.Options{Addr: addr}), nil)
}

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write
// passes the guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	server := ownServer(t, redisserver.Durable...)
	front := proxy(t, server.Addr())
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: []string{front.Addr(), front.Addr(), front.Addr()}, Duration: time.Second}, rounds,
		func(r *rand.Rand) string { return harm(t, server, front, r) })
}
