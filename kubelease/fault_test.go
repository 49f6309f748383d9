package kubelease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// underFaults starts an API server that fails, as do its etcd and the connections to it.
func underFaults(t *testing.T) enginetest.Target {
	server := newServer(t)
	target := enginetest.UnderFaults(t, server.API, nil)
	harm := target.Harm
	target.Harm = func(r *rand.Rand) (what string) {
		var err error
		switch n := r.IntN(8); {
		case n < 3:
			what, err = "etcd paused", server.Etcd.Pause(time.Duration(100+r.IntN(700))*time.Millisecond)
		case n == 3:
			what, err = "etcd compacted", server.Compact(t.Context())
		default:
			what = harm(r)
		}
		if err != nil {
			t.Error(err)
		}
		return what
	}
	return target
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	enginetest.GraceWithAWatch(t, newStore(t), newStore(t).Authority(), objectOf(t))
}

// checkHistories checks histories by the clocks of the clients.
func checkHistories(t *testing.T, target enginetest.Target, runs int, term time.Duration) {
	t.Parallel()
	linearize.TestHistories(t, target, func(t testing.TB, address string) enginetest.Store { return store(t, client(t, address), nil) },
		&linearize.TestOptions{
			Runs: runs, Workload: linearize.Workload{Term: term}, Options: linearize.Options{Observed: true, Late: true},
			Name: func(seed uint64) string { return fmt.Sprint(objectOf(t), seed) },
		})
}

// SPEC A2, A4: histories are linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(shared.Address, 4), 1000, 12*time.Millisecond)
}

// Histories are linearizable while the API server is paused, killed and started again, its etcd is paused,
// so that writes that timed out are applied later, or compacted, and connections fail.
func TestHistoriesUnderFaults(t *testing.T) {
	checkHistories(t, underFaults(t), 400, 200*time.Millisecond)
}

// term is the duration of the leases of a group.
const term = time.Second

// SPEC G1, G2, H9: the API server is paused and resumed, killed and started again, its etcd is paused,
// and connections are cut or die. Holders are paused, resumed and killed, and two plain electors
// contend for the same object. No stale write passes the guard, and no holder of this library believes
// that it holds the lease while another of them has it.
func TestHoldersUnderFaults(t *testing.T) {
	t.Parallel()
	target := underFaults(t)
	target.Endpoints = target.Endpoints[:3]
	ctx, cancel := context.WithCancel(t.Context())
	var electors sync.WaitGroup
	led := make([]int, 2)
	name := objectOf(t)
	for i := range led {
		electors.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// ReleaseOnCancel is off, as it is by default: else an elector that was replaced can clear the lease.
				e := startElector(t, target.Endpoints[0], name, fmt.Sprint("elector-", i, "-", n), electorTimes{time.Second, 800 * time.Millisecond, 100 * time.Millisecond}, false)
				select {
				case <-e.started:
					led[i]++
					select {
					case <-e.ended: // the elector could not renew
					case <-time.After(term / 2):
					case <-ctx.Done():
					}
				case <-ctx.Done():
				}
				e.stop()
			}
		})
	}
	enginetest.TestHolders(t, target, &enginetest.HolderOptions{Name: name, Duration: term})
	cancel()
	electors.Wait()
	t.Logf("the electors have led %v times", led)
	if led[0]+led[1] == 0 {
		t.Error("no elector has led: that proves nothing")
	}
}
