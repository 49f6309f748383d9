package shards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// planKnown moves a shard only between processes that know the same names of its bucket, never takes a shard
// from a member that does not, and gives no member more than its Max. With equal names it is plan.
func TestPlanKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []worker
		knows, holds := map[string]digest{}, map[string]int{}
		sets := []map[string]bool{{}, {}}
		var names []string
		for i := range rapid.IntRange(1, 40).Draw(t, "names") {
			name := fmt.Sprint("s", i)
			names = append(names, name)
			sets[0][name] = true
			if rapid.IntRange(0, 4).Draw(t, "shared") > 0 {
				sets[1][name] = true
			}
		}
		set := map[string]int{}
		for i := range rapid.IntRange(1, 5).Draw(t, "members") {
			m := aMember(fmt.Sprint("m", i), rapid.IntRange(1, 3).Draw(t, "weight"), rapid.IntRange(0, 12).Draw(t, "max"))
			set[m.ID] = rapid.IntRange(0, 1).Draw(t, "set")
			if i == 0 {
				set[m.ID] = 0
			}
			m.knows = digestOf(slices.Collect(maps.Keys(sets[set[m.ID]])))
			knows[m.ID], members = m.knows, append(members, m)
		}
		var shards []shard
		for i, name := range names {
			holder := rapid.SampledFrom([]string{"", "", "gone", "m0", "m1"}).Draw(t, "holder")
			if m, ok := knows[holder]; ok && holds[holder] >= max(members[holder[1]-'0'].Max, 1) || ok && m != knows["m0"] && !sets[1][name] {
				holder = ""
			}
			holds[holder]++
			shards = append(shards, shard{name, holder, uint64(i)})
		}
		moves := planKnown(members, knows["m0"], shards)
		if len(members) == 1 || !slices.Contains(slices.Collect(maps.Values(set)), 1) {
			if want := plan(members, shards); fmt.Sprint(sortedMoves(moves)) != fmt.Sprint(sortedMoves(want)) {
				t.Fatalf("all know the same names, and the moves are %v, not %v", moves, want)
			}
		}
		for _, m := range moves {
			b := bucket(m.name)
			_, fromMember := knows[m.from]
			if knows[m.to][b] != knows["m0"][b] || fromMember && knows[m.from][b] != knows["m0"][b] {
				t.Fatalf("%v moves between processes that know different names", m)
			}
			holds[m.from]--
			holds[m.to]++
		}
		for _, m := range members {
			if m.Max > 0 && holds[m.ID] > m.Max {
				t.Fatalf("%s gets %d shards, and its Max is %d", m.ID, holds[m.ID], m.Max)
			}
		}
	})
}

func sortedMoves(moves []move) []move {
	return slices.SortedFunc(slices.Values(moves), func(a, b move) int { return strings.Compare(a.name, b.name) })
}
