package redislease_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/redislease"
)

// inServerTime are the options for histories in the time of the server.
var inServerTime = linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	linearize.TestHistories(t, enginetest.At(shared.Addr(), 4), func(_ testing.TB, addr string) enginetest.Store {
		return store(t, client(t, addr), &redislease.Options{Prefix: prefix(t)})
	}, &linearize.TestOptions{Runs: 2000, Options: inServerTime})
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections fail.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	linearize.TestHistories(t, underFaults(t), nil, &linearize.TestOptions{Options: inServerTime})
}

// underFaults starts a server that fails, but keeps what it has acknowledged.
func underFaults(t *testing.T) enginetest.Target {
	return enginetest.UnderFaults(t, ownServer(t, redisserver.Durable...), func(addr string) string { return "redis://" + addr })
}

// Histories are linearizable while the primary is killed and its replica is promoted. The replica
// has acknowledged every request that was answered, so no answered request is lost.
func TestHistoriesUnderFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	target := enginetest.At(p.front.Addr(), 4)
	target.Harm = func(r *rand.Rand) string {
		if r.IntN(3) == 0 {
			p.front.Cut()
			return "cut connections"
		}
		p.primary.Kill()
		p.failOver(t)
		p.primary = p.replica
		p.replica = newReplica(t, p.primary, p.primary.Addr())
		return "failover"
	}
	linearize.TestHistories(t, target, func(_ testing.TB, addr string) enginetest.Store {
		return store(t, client(t, addr), &redislease.Options{Replicas: 1, ReplicaTimeout: 200 * time.Millisecond})
	}, &linearize.TestOptions{Runs: 200, Options: inServerTime})
}

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write
// passes the guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, underFaults(t), nil)
}
