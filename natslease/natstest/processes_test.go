package natstest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
)

// hold lets three processes hold a lease at the endpoints, while the function harm injects faults.
func hold(t *testing.T, rounds int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		rounds = 8
	}
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: time.Second}, rounds, harm)
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections are cut
// or die silently, while holders are paused, resumed and killed. No stale write passes the guard, and
// no holder believes that it holds the lease while another has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := enginetest.NewProxy(t, server.Client, nil)
	hold(t, 60, []string{"nats://" + p.Addr(), "nats://" + p.Addr(), server.url()}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// SPEC G1, G2, H9: in a cluster of three members, no stale write passes the guard while the leader
// is stopped, steps down or is cut off, and while another member is cut off.
func TestHoldersAtAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	js := client(t, strings.Join(c.endpoints(), ","))
	hold(t, 60, c.endpoints(), func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}
