package shards

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// planKnown moves a shard only between processes that know the same names of its bucket, never takes a shard
// from a member that does not, and gives no member more than its Max. With equal names it is plan.
func TestPlanKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w := drawWorld(random, 5, 40)
		var all, some []string
		for _, s := range w.shards {
			if all = append(all, s.name); random.IntN(5) > 0 {
				some = append(some, s.name)
			}
		}
		equal := true
		for i := range w.members {
			if w.members[i].knows = digestOf(all); i > 0 && random.IntN(2) == 0 {
				w.members[i].knows, equal = digestOf(some), false
			}
		}
		own := w.members[0].knows
		moves := planKnown(w.members, own, w.shards)
		if want := plan(w.members, w.shards); equal && !slices.Equal(moves, want) {
			t.Fatalf("all know the same names in %v, and the moves are %v, not %v", w, moves, want)
		}
		for _, mv := range moves {
			for _, m := range w.members {
				if b := bucket(mv.name); (m.ID == mv.from || m.ID == mv.to) && m.knows[b] != own[b] {
					t.Fatalf("in %v, %v moves between processes that know different names", w, mv)
				}
			}
		}
		before, after := w.loads(), w.apply(moves, func(int) bool { return true }).loads()
		for _, m := range w.members {
			if n := after[m.ID]; m.Max > 0 && n > m.Max && n > before[m.ID] {
				t.Fatalf("in %v, %s gets %d shards by %v", w, m.ID, n, moves)
			}
		}
	})
	if d := digestOf([]string{"a"}); parseDigest(d.String()) != d || parseDigest(strings.Repeat("x", 10)) != (digest{}) {
		t.Error("a digest cannot be read back")
	}
}
