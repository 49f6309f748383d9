package kubelease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
)

// term is the duration of the leases of a group.
const term = time.Second

// SPEC G1, G2, H9: the API server is paused and resumed, killed and started again, its etcd is paused,
// and connections are cut or die. Holders are paused, resumed and killed, and two plain electors
// contend for the same object. No stale write passes the guard, and no holder of this library believes
// that it holds the lease while another of them has it.
func TestHoldersUnderFaults(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	p := enginetest.NewProxy(t, server.Address, nil)
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	ctx, cancel := context.WithCancel(t.Context())
	var electors sync.WaitGroup
	led := make([]int, 2)
	name := objectOf(t)
	for i := range led {
		electors.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// ReleaseOnCancel is off, as it is by default: else an elector that was replaced can clear the lease.
				e := startElectorAt(t, p.Addr(), name, fmt.Sprint("elector-", i, "-", n), electorTimes{time.Second, 800 * time.Millisecond, 100 * time.Millisecond}, false)
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
	processes.Prove(t, processes.Options{Name: name, Endpoints: []string{p.Addr(), p.Addr(), server.Address}, Duration: term}, rounds,
		func(r *rand.Rand) string { return harm(t, r, server, p) })
	cancel()
	electors.Wait()
	t.Logf("the electors have led %v times", led)
	if led[0]+led[1] == 0 {
		t.Error("no elector has led: that proves nothing")
	}
}
