package etcdtest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/processes"
)

// term is the duration of the leases of a group.
const term = time.Second

// hold lets processes hold a lease at the endpoints, while the function harm injects faults.
func hold(t *testing.T, rounds int, endpoints []string, harm func(*rand.Rand) string) {
	if testing.Short() {
		rounds = 8
	}
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: term}, rounds, harm)
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections are cut,
// while holders are paused, resumed and killed. No stale write passes the guard, and no holder believes
// that it holds the lease while another has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	p := newProxy(t, server.Client)
	hold(t, 120, []string{urlOf(p), urlOf(p), server.Client}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// SPEC G1, G2, H9: in a cluster of three members, no stale write passes the guard while the leader
// crashes and comes back, and while members are cut off.
func TestHoldersAtAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	hold(t, 80, endpoints(members), func(r *rand.Rand) string { return harmCluster(t, r, members) })
}

// Groups of processes find planted bugs.
func TestProcessesFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, wrong := range processes.Wrongs() {
		t.Run(string(wrong), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			c := processes.New(t, processes.Options{Name: t.Name(), Endpoints: slices.Repeat([]string{shared.Client}, 3), Duration: term, Seed: seed, Wrong: wrong})
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
