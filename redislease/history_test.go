package redislease_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// checkHistories checks histories of four clients, whether requests first load the record or start from a
// remembered record. A client gives up a request when its patience is over.
func checkHistories(t *testing.T, open func() *redislease.Store, runs, requests int, d, patience time.Duration, harm func(*rand.Rand) string) {
	var loading []lease.Store
	var through []enginetest.Through
	for range 4 {
		s := open()
		loading, through = append(loading, enginetest.Impatient(s, patience)), append(through, s.Through)
	}
	clock := histories.Options{OwnClock: true}
	t.Run("loading", func(t *testing.T) {
		enginetest.Histories(t, runs, clock, func(seed uint64, i int) *histories.History {
			return histories.Run(t.Context(), seed, fmt.Sprint("loading-", i), loading, requests, d)
		}, harm)
	})
	t.Run("remembering", func(t *testing.T) {
		var renewals atomic.Int64
		enginetest.Histories(t, runs, clock, func(seed uint64, i int) *histories.History {
			return enginetest.Remembering(t, seed, fmt.Sprint("remembering-", i), through, requests, d, patience, &renewals)
		}, harm)
		if n := renewals.Load(); n < int64(runs) {
			t.Errorf("%d renewals in one exchange prove nothing", n)
		}
	})
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 50
	}
	checkHistories(t, func() *redislease.Store {
		return store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	}, runs, 15, 6*time.Millisecond, time.Minute, nil)
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
	underFaults(t, 15, p.front, &redislease.Options{Replicas: 1, ReplicaTimeout: patience}, func(r *rand.Rand) string {
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
		runs = 2
	}
	open := func() *redislease.Store { return store(t, client(t, front.Addr()), o) }
	checkHistories(t, open, runs, 600, 100*time.Millisecond, patience, harm)
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
