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
			m := worker{fmt.Sprint("m", i), rapid.IntRange(1, 3).Draw(t, "weight"), rapid.IntRange(0, 12).Draw(t, "max")}
			members = append(members, m)
			set[m.id] = rapid.IntRange(0, 1).Draw(t, "set")
			if i == 0 {
				set[m.id] = 0
			}
			knows[m.id] = digestOf(slices.Collect(maps.Keys(sets[set[m.id]])))
		}
		var shards []shard
		for i, name := range names {
			holder := rapid.SampledFrom([]string{"", "", "gone", "m0", "m1"}).Draw(t, "holder")
			if m, ok := knows[holder]; ok && holds[holder] >= max(members[holder[1]-'0'].max, 1) || ok && m != knows["m0"] && !sets[1][name] {
				holder = ""
			}
			holds[holder]++
			shards = append(shards, shard{name, holder, uint64(i)})
		}
		moves := planKnown(members, knows, knows["m0"], shards)
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
			if m.max > 0 && holds[m.id] > m.max {
				t.Fatalf("%s gets %d shards, and its Max is %d", m.id, holds[m.id], m.max)
			}
		}
	})
}

func sortedMoves(moves []move) []move {
	return slices.SortedFunc(slices.Values(moves), func(a, b move) int { return strings.Compare(a.name, b.name) })
}

// Without a Max, each share is the exact weighted share rounded down or up, so one that is a whole number is
// not changed, whatever the members have. Of members that have no more than their share, those with the largest
// remainders are rounded up.
func TestExactShares(t *testing.T) {
	if got := shares([]worker{{"a", 2, 0}, {"b", 1, 0}, {"c", 1, 0}}, map[string]int{"a": 2}, 2); got["a"] != 1 {
		t.Errorf("the shares of 2 shards by the weights 2, 1 and 1 are %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		var members []worker
		loads, sum, total := map[string]int{}, 0, 0
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			m := worker{fmt.Sprint("m", i), rapid.IntRange(1, 5).Draw(t, "weight"), 0}
			members, sum = append(members, m), sum+m.weight
			loads[m.id] = rapid.IntRange(0, 9).Draw(t, "load")
		}
		n := rapid.IntRange(0, 30).Draw(t, "n")
		all := shares(members, loads, n)
		for _, a := range members {
			for _, b := range members {
				low := loads[a.id] <= n*a.weight/sum && loads[b.id] <= n*b.weight/sum
				if low && n*a.weight%sum > n*b.weight%sum && all[a.id] == n*a.weight/sum && all[b.id] > n*b.weight/sum {
					t.Fatalf("%v is rounded up, and %v with the larger remainder is not", b, a)
				}
			}
		}
		for _, m := range members {
			got := all[m.id]
			if d := got*sum - n*m.weight; d <= -sum || d >= sum {
				t.Fatalf("%d of %d shards for weight %d of %d", got, n, m.weight, sum)
			}
			total += got
		}
		if total != n {
			t.Fatalf("the shares are %d of %d shards", total, n)
		}
	})
}
