package kubelease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

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
