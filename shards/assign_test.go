package shards

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var deep = flag.Bool("shards.deep", false, "try every world of 3 and 4 processes")

// A world is an input of plan, and what follows from it.
type world struct {
	members []worker
	shards  []shard
}

func (w world) String() string { return fmt.Sprintf("members %v, shards %v", w.members, w.shards) }

func (w world) loads() map[string]int {
	loads := map[string]int{}
	for _, s := range w.shards {
		loads[s.holder]++
	}
	return loads
}

// fair returns the exact weighted share of each member. It fills up all members at the same rate until
// they are full or no shard is left, in small steps, and is therefore slow and plain.
func (w world) fair() map[string]float64 {
	fair := map[string]float64{}
	open := slices.Clone(w.members)
	for left := float64(len(w.shards)); left > 1e-9 && len(open) > 0; {
		sum, step := 0.0, math.Inf(1)
		for _, m := range open {
			sum += float64(m.weight)
			if m.max > 0 {
				step = min(step, (float64(m.max)-fair[m.id])/float64(m.weight))
			}
		}
		step = min(step, left/sum)
		for _, m := range open {
			fair[m.id] += step * float64(m.weight)
		}
		left -= step * sum
		open = slices.DeleteFunc(open, func(m worker) bool { return m.max > 0 && float64(m.max)-fair[m.id] < 1e-9 })
	}
	return fair
}

// apply carries out some of the moves.
func (w world) apply(moves []move, done func(i int) bool) world {
	to := map[string]string{}
	for i, m := range moves {
		if done(i) {
			to[m.name] = m.to
		}
	}
	next := world{w.members, slices.Clone(w.shards)}
	for i, s := range next.shards {
		if id, ok := to[s.name]; ok {
			next.shards[i].holder = id
		}
	}
	return next
}

func all(int) bool { return true }

// check checks a plan: its balance, number of moves and stability, also if only some moves are carried out.
func (w world) check(part uint) error {
	moves := plan(w.members, w.shards)
	ids := map[string]worker{}
	for _, m := range w.members {
		ids[m.id] = m
	}
	seen := map[string]bool{}
	for _, m := range moves {
		i := slices.IndexFunc(w.shards, func(s shard) bool { return s.name == m.name })
		_, known := ids[m.to]
		listed := i >= 0 && w.shards[i].holder == m.from
		if !listed || !known || m.to == m.from || seen[m.name] {
			return fmt.Errorf("the move %v is not possible", m)
		}
		seen[m.name] = true
	}
	after := w.apply(moves, all)
	stops := slices.ContainsFunc(moves, func(m move) bool { return m.from != "" })
	if stops && slices.ContainsFunc(after.shards, func(s shard) bool { return s.holder == "" }) {
		return fmt.Errorf("running work stops in %v, and a free shard is left", moves)
	}
	loads, before, fair := after.loads(), w.loads(), w.fair()
	lacking, total := 0.0, 0
	for _, m := range w.members {
		// A process with more than its max keeps them if no other process has room.
		full := m.max > 0 && before[m.id] > m.max && loads[m.id] > m.max
		if diff := float64(loads[m.id]) - fair[m.id]; math.Abs(diff) > 1-1e-9 && !full {
			return fmt.Errorf("%s has %d shards after %v, and its share is %.2f", m.id, loads[m.id], moves, fair[m.id])
		}
		if m.max > 0 && loads[m.id] > m.max && loads[m.id] > before[m.id] {
			return fmt.Errorf("%s gets %d shards, and its max is %d", m.id, loads[m.id], m.max)
		}
		for _, o := range w.members { // of those that had no more than their share, the largest fractions are rounded up
			low := float64(before[m.id]) <= fair[m.id] && float64(before[o.id]) <= fair[o.id]
			if low && fraction(fair[m.id]) > fraction(fair[o.id])+1e-9 && float64(loads[m.id]) < fair[m.id]-1e-9 && float64(loads[o.id]) > fair[o.id]+1e-9 {
				return fmt.Errorf("%s is rounded up, and %s with the larger fraction is not: %v of %v", o.id, m.id, loads, fair)
			}
		}
		lacking += math.Max(0, math.Ceil(fair[m.id]-1e-9)-float64(before[m.id]))
		total += loads[m.id]
	}
	if float64(len(moves)) > lacking {
		return fmt.Errorf("%d moves, but only %v are lacking", len(moves), lacking)
	}
	if again := plan(after.members, after.shards); len(again) > 0 {
		return fmt.Errorf("after all moves there are more: %v", again)
	}
	rest := w.apply(moves, func(i int) bool { return part>>(i%32)&1 == 1 })
	if left := plan(rest.members, rest.shards); len(left) != len(moves)-countMoved(w, rest) {
		return fmt.Errorf("after a part of %v, %v is left", moves, left)
	}
	shuffled := world{slices.Clone(w.members), slices.Clone(w.shards)}
	slices.Reverse(shuffled.members)
	slices.Reverse(shuffled.shards)
	if other := plan(shuffled.members, shuffled.shards); !slices.Equal(other, moves) {
		return fmt.Errorf("in another order the moves are %v instead of %v", other, moves)
	}
	return nil
}

// fraction returns the part of a share behind the decimal point.
func fraction(share float64) float64 { return share - math.Floor(share+1e-9) }

func countMoved(a, b world) (n int) {
	for i := range a.shards {
		if a.shards[i].holder != b.shards[i].holder {
			n++
		}
	}
	return n
}

// The plan is right in every world of up to 5 shards and 4 processes: equal weights and one heavy
// process, no limit and a low one, and holders that are no members any more.
func TestPlanExhaustive(t *testing.T) {
	n := 0
	for processes := 1; processes <= 4; processes++ {
		for kinds := 0; kinds < 1<<(2*processes); kinds++ {
			if equal := (1<<(2*processes) - 1) / 3; processes > 2 && kinds%equal != 0 && !*deep {
				continue // of the kinds of 3 and 4 processes, try those of equal processes
			}
			var members []worker
			for i := range processes {
				m := worker{id: string(rune('a' + i)), weight: 1 + 2*(kinds>>(2*i)&1)}
				if kinds>>(2*i+1)&1 == 1 {
					m.max = 2
				}
				members = append(members, m)
			}
			for names := 0; names <= 5; names++ {
				holders := make([]int, names) // 0 is free, and processes+1 is no member
				for more := true; more; {
					w := world{members: members}
					for i, h := range holders {
						s := shard{name: string(rune('1' + i)), order: uint64(i % 3)}
						if h > 0 {
							s.holder = string(rune('a' + h - 1))
						}
						w.shards = append(w.shards, s)
					}
					n++
					if err := w.check(uint(n)); err != nil {
						t.Fatalf("%v: %v", w, err)
					}
					more = false
					for i := range holders { // count up, with processes+2 digits
						if holders[i]++; holders[i] <= processes+1 {
							more = true
							break
						}
						holders[i] = 0
					}
				}
			}
		}
	}
	if n < 40_000 {
		t.Errorf("only %d worlds", n)
	}
}

func drawWorld(t *rapid.T) world {
	var w world
	for i := range rapid.IntRange(1, 30).Draw(t, "processes") {
		m := worker{id: fmt.Sprintf("%02d", i), weight: rapid.SampledFrom([]int{1, 1, 1, 2, 3, 10}).Draw(t, "weight")}
		if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
			m.max = rapid.IntRange(1, 40).Draw(t, "max")
		}
		w.members = append(w.members, m)
	}
	for i := range rapid.IntRange(0, 300).Draw(t, "shards") {
		s := shard{name: fmt.Sprint(i), order: uint64(rapid.IntRange(0, 5).Draw(t, "order"))}
		if h := rapid.IntRange(-2, len(w.members)+1).Draw(t, "holder"); h >= 0 {
			s.holder = fmt.Sprintf("%02d", h)
		}
		w.shards = append(w.shards, s)
	}
	return w
}

func TestPlanDrawn(t *testing.T) {
	w := world{[]worker{{"a", 2, 0}, {"b", 1, 0}, {"c", 1, 0}}, []shard{{"1", "a", 0}, {"2", "a", 1}}} // a's share is a whole number
	if err := w.check(1); err != nil {
		t.Error(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := drawWorld(t).check(rapid.Uint().Draw(t, "part")); err != nil {
			t.Fatal(err)
		}
	})
}

// Every process computes the same rank, on every machine and in every version.
func TestRankIsFixed(t *testing.T) {
	if got := rank("orders/17", "5b1c"); got != 0x3ca29ff2e1d30862 {
		t.Errorf("%#x", got)
	}
	ids := []string{"a", "b", "c", "d"}
	first := map[string]int{}
	for i := range 1000 {
		first[slices.MaxFunc(ids, func(a, b string) int { return cmp.Compare(rank(fmt.Sprint(i), a), rank(fmt.Sprint(i), b)) })]++
	}
	for _, id := range ids {
		if n := first[id]; n < 200 || n > 300 {
			t.Errorf("%s ranks first for %d of 1000 shards", id, n)
		}
	}
}

// A Max of math.MaxInt is no limit, so no shard is idle because of it.
func TestTooManyOfTheLargestMax(t *testing.T) {
	all := []worker{{id: "a", weight: 1, max: math.MaxInt}, {id: "b", weight: 1, max: math.MaxInt}}
	if n := tooMany(all, 10, nil); n != 0 {
		t.Errorf("%d of 10 shards are idle", n)
	}
}
