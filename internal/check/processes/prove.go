package processes

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Prove runs a group, with a random Seed, for the given number of rounds. In each round it harms a process
// of the group and also calls harm, which harms the engine. If the report is too small to prove anything,
// it runs more rounds. If the report has a violation, it fails the test.
func Prove(t *testing.T, o Options, rounds int, harm func(*rand.Rand) string) {
	t.Helper()
	o.Seed = rand.Uint64()
	r := rand.New(rand.NewPCG(o.Seed, 0))
	c := New(t, o)
	faults := map[string]int{}
	proves := func(seen Report) bool {
		return seen.Grants >= rounds/2 && seen.Refused >= rounds/8 && seen.Believed >= 10*rounds
	}
	for n := 0; n < rounds || n < 4*rounds && !proves(c.Seen()); n++ {
		var holder sync.WaitGroup
		var what string
		other := rand.New(rand.NewPCG(r.Uint64(), 0))
		holder.Go(func() {
			time.Sleep(time.Duration(other.Int64N(int64(o.Duration)))) // a real process
			what = c.Harm(other)
		})
		time.Sleep(time.Duration(r.Int64N(int64(o.Duration)))) // a real engine
		faults[harm(r)]++
		holder.Wait()
		faults[what]++
	}
	seen := c.End()
	t.Logf("seed %d: %d grants, %d writes admitted, %d requests refused as stale, %d looks of which %d believed, under %v",
		o.Seed, seen.Grants, seen.Admitted, seen.Refused, seen.Looks, seen.Believed, faults)
	for _, bad := range seen.Bad {
		t.Error(bad)
	}
	if !proves(seen) {
		t.Error("that proves nothing")
	}
}
