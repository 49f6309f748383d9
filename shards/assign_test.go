package shards

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var deep = flag.Bool("shards.deep", false, "try 100 times as many plans")

// A world is an input of plan, and what follows from it.
type world struct {
	members []worker
	shards  []shard
}

func aMember(id string, weight, most int) worker {
	return worker{Member: Member{ID: id, Weight: weight, Max: most}, offers: unlimited}
}

func (w world) String() (text string) {
	for _, m := range w.members {
		text += fmt.Sprintf("%s has weight %d and max %d, ", m.ID, m.Weight, m.Max)
	}
	return fmt.Sprint(text, "shards ", w.shards)
}

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
			sum += float64(m.Weight)
			if m.Max > 0 {
				step = min(step, (float64(m.Max)-fair[m.ID])/float64(m.Weight))
			}
		}
		step = min(step, left/sum)
		for _, m := range open {
			fair[m.ID] += step * float64(m.Weight)
		}
		left -= step * sum
		open = slices.DeleteFunc(open, func(m worker) bool { return m.Max > 0 && float64(m.Max)-fair[m.ID] < 1e-9 })
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
		ids[m.ID] = m
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
	lacking := 0.0
	for _, m := range w.members {
		// A process with more than its max keeps them if no other process has room.
		full := m.Max > 0 && before[m.ID] > m.Max && loads[m.ID] > m.Max
		if diff := float64(loads[m.ID]) - fair[m.ID]; math.Abs(diff) > 1-1e-9 && !full {
			return fmt.Errorf("%s has %d shards after %v, and its share is %.2f", m.ID, loads[m.ID], moves, fair[m.ID])
		}
		if m.Max > 0 && loads[m.ID] > m.Max && loads[m.ID] > before[m.ID] {
			return fmt.Errorf("%s gets %d shards, and its max is %d", m.ID, loads[m.ID], m.Max)
		}
		for _, o := range w.members { // of those that had no more than their share, the largest fractions are rounded up
			low := float64(before[m.ID]) <= fair[m.ID] && float64(before[o.ID]) <= fair[o.ID]
			if low && fraction(fair[m.ID]) > fraction(fair[o.ID])+1e-9 && float64(loads[m.ID]) < fair[m.ID]-1e-9 && float64(loads[o.ID]) > fair[o.ID]+1e-9 {
				return fmt.Errorf("%s is rounded up, and %s with the larger fraction is not: %v of %v", o.ID, m.ID, loads, fair)
			}
		}
		lacking += math.Max(0, math.Ceil(fair[m.ID]-1e-9)-float64(before[m.ID]))
	}
	idle := float64(len(w.shards))
	for _, share := range fair {
		idle -= share
	}
	if n := tooMany(w.members, len(w.shards)); math.Abs(float64(n)-idle) > 1e-6 {
		return fmt.Errorf("%d shards are idle, and should be %.2f", n, idle)
	}
	if float64(len(moves)) > lacking {
		return fmt.Errorf("%d moves, but only %v are lacking", len(moves), lacking)
	}
	if again := plan(after.members, after.shards); len(again) > 0 {
		return fmt.Errorf("after all moves there are more: %v", again)
	}
	undone := 0
	rest := w.apply(moves, func(i int) bool {
		done := part>>(i%32)&1 == 1
		if !done {
			undone++
		}
		return done
	})
	if left := plan(rest.members, rest.shards); len(left) != undone {
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

// drawWorld draws a world of at most so many processes and shards. Some holders are no members any more.
func drawWorld(random *rand.Rand, processes, shards int) (w world) {
	for i := range 1 + random.IntN(processes) {
		m := aMember(string(rune('A'+i)), []int{1, 1, 1, 2, 3, 10}[random.IntN(6)], 0)
		if random.IntN(3) == 0 {
			m.Max = []int{1, 2, 1 + random.IntN(40), math.MaxInt}[random.IntN(4)]
		}
		w.members = append(w.members, m)
	}
	for i := range random.IntN(shards + 1) {
		s := shard{name: fmt.Sprint(i), order: uint64(random.IntN(3))}
		if h := random.IntN(len(w.members) + 4); h > 1 {
			s.holder = string(rune('A' + h - 2))
		}
		w.shards = append(w.shards, s)
	}
	return w
}

func TestPlan(t *testing.T) {
	n := 20_000
	if *deep {
		n *= 100
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		w := drawWorld(random, 4, 6) // a small world first, because it is easier to understand
		if i > n*99/100 {
			w = drawWorld(random, 30, 300)
		}
		if err := w.check(random.Uint()); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, w, err)
		}
	}
}

// Every process computes the same rank, on every machine and in every version.
func TestRankIsFixed(t *testing.T) {
	if got := rank("orders/17", "5b1c"); got != 0x3ca29ff2e1d30862 {
		t.Errorf("%#x", got)
	}
}
