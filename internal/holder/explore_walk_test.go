package holder

import (
	"math/rand/v2"
	"testing"
)

// TestWalks follows random paths of many events, which the search of TestExplore is too slow to
// reach, with the checks of TestExplore. At the end of each path, the network heals.
func TestWalks(t *testing.T) {
	walks := 100
	if underRace {
		walks = 20
	}
	if *deep {
		walks = 20_000
	}
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			long := *c
			long.bounds = bounds{calls: [2]uint8{14, 14}, faults: 8, ticks: 20, others: 6, reads: 4}
			steps := 0
			for seed := range uint64(walks) {
				random := rand.New(rand.NewPCG(seed, 0))
				s := newSearch(&long)
				w := s.first()
				c := s.copy(w)
				for range 20 + random.IntN(60) {
					s.spare = c.events(s.spare)
					if len(s.spare) == 0 || c.problem != nil {
						break
					}
					e := s.spare[random.IntN(len(s.spare))]
					s.trail = append(s.trail, e)
					s.visit(c, e)
					steps++
				}
				if c.problem == nil {
					s.mend(c, c.healing())
				}
				if c.problem != nil {
					s.found = c.problem
					t.Fatalf("seed %d: property %s: %s\n%s", seed, c.problem.property, c.problem.text, s.story())
				}
			}
			t.Logf("%d walks, %d transitions", walks, steps)
		})
	}
}
