package natstest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/processes"
)

// term is the duration of the leases of a group.
const term = time.Second

// hold lets three processes hold a lease at the endpoints, while the function harm injects faults.
func hold(t *testing.T, rounds int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		rounds = 8
	}
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: term}, rounds, harm)
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections are
// cut or die silently, while holders are paused, resumed and killed. No stale write passes the
// guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := newProxy(t, server.Client, nil)
	hold(t, 60, []string{p.url(), p.url(), server.url()}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// SPEC G1, G2, H9: in a cluster of three members, no stale write passes the guard while the leader
// is stopped, steps down or is cut off, and while another member is cut off.
func TestHoldersAtAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	js := client(t, strings.Join(c.endpoints(), ","))
	hold(t, 60, c.endpoints(), func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}

// Groups of processes find planted bugs. The tests of etcdtest plant the store that takes a
// time-out for success. Here such a store would load before each swap, with two exchanges. A
// stopped server would therefore nearly always leave the load without an answer, and not the swap.
func TestProcessesFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, wrong := range processes.Wrongs() {
		if wrong == processes.Trusting {
			continue
		}
		t.Run(string(wrong), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			endpoints := slices.Repeat([]string{shared.url()}, 3)
			c := processes.New(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: term, Seed: seed, Wrong: wrong})
			const rounds = 200
			faults := map[string]int{}
			for range rounds {
				time.Sleep(time.Duration(r.Int64N(int64(term) / 4))) // a real engine
				faults[c.Harm(r)]++
				if bad := c.Seen().Bad; len(bad) > 0 {
					t.Logf("found under %v: %s", faults, bad[0])
					return
				}
			}
			t.Errorf("seed %d: not found in %d rounds", seed, rounds)
		})
	}
}
