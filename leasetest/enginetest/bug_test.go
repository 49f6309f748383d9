//go:build linux

package enginetest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Bugs are the bugs that FindBug can plant.
var Bugs = bugs

// FindBug harms the holders of a target in which a bug is planted, until the bug is found.
func FindBug(t *testing.T, target Target, b bug) {
	const duration, rounds = 500 * time.Millisecond, 200
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	c := newGroup(t, target.Endpoints, HolderOptions{Name: t.Name(), Duration: duration, bug: b}, seed)
	for n := range rounds {
		time.Sleep(time.Duration(r.Int64N(int64(duration) / 4))) // a real process
		c.harm(r)
		if bad := c.resource.seen().bad; len(bad) > 0 {
			t.Logf("found in round %d: %s", n, bad[0])
			return
		}
	}
	t.Errorf("seed %d: not found in %d rounds", seed, rounds)
}
