package shards

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A worker is a process of the group.
type worker struct {
	Member
	knows  digest // the names that it knows
	offers int    // the largest number of shards that it accepts; unlimited outside a quarantine
}

// A shard is a name and the process that holds its lease.
type shard struct {
	name   string
	holder string // the id of a process, which may have left the group; empty if the shard is free
	order  uint64 // a holder that has too many shards first releases those with the highest order
}

// A move says that a shard should change hands. One process then ends its work and releases the lease of the
// shard, and another process acquires this lease.
type move struct {
	name     string
	from, to string // from is empty if the shard is free
}

// plan returns the smallest number of moves after which every member has its share. A process that is not a
// member only keeps shards for which no member has room. The order of the arguments' elements does not
// matter, so all processes that see the same list compute the same moves.
func plan(members []worker, shards []shard) []move {
	loads := make(map[string]int, len(members)) // the free shards count as those of the holder ""
	for _, s := range shards {
		loads[s.holder]++
	}
	targets := shares(members, loads, len(shards))
	lacks := make(map[string]int) // by the id of each member that has less than its share
	for id, n := range targets {
		if n > loads[id] {
			lacks[id] = n - loads[id]
		}
	}
	short := slices.Sorted(maps.Keys(lacks))

	// Move free shards first. Otherwise a member could get a shard on which another member is working,
	// although it could have got a free shard.
	sorted := slices.Clone(shards)
	slices.SortFunc(sorted, func(a, b shard) int {
		return cmp.Or(cmp.Compare(a.holder, b.holder), cmp.Compare(b.order, a.order), strings.Compare(a.name, b.name))
	})
	var moves []move
	for _, s := range sorted {
		if loads[s.holder] <= targets[s.holder] {
			continue
		}
		loads[s.holder]--
		to := receiver(s.name, short, lacks)
		if to == "" {
			break
		}
		lacks[to]--
		moves = append(moves, move{s.name, s.holder, to})
	}
	return moves
}

// shares returns how many of n shards each member should have. This is the member's weighted fair share, but
// at most its max. A fair share that is not a whole number is rounded up for some members and down for
// others. For example, if the fair share is 2.5, some members get 3 shards and the others get 2. Members that
// already have 3 shards or more are then the first to get 3, so that fewer shards move.
func shares(members []worker, loads map[string]int, n int) map[string]int {
	targets := make(map[string]int, len(members))
	rest := slices.Clone(members)
	weights := func() (sum int) {
		for _, m := range rest {
			sum += m.Weight
		}
		return sum
	}
	// A member whose fair share is its max or more gets its max. The other members share the rest, so one of
	// them may then reach its own max.
	for full := true; full; {
		full = false
		left, sum := n, weights()
		rest = slices.DeleteFunc(rest, func(m worker) bool {
			if m.Max == 0 || m.Max > left || int64(left)*int64(m.Weight) < int64(m.Max)*int64(sum) {
				return false
			}
			targets[m.ID] = m.Max
			n -= m.Max
			full = true
			return true
		})
	}
	sum, left := weights(), n
	remainder := make(map[string]int, len(rest))
	for _, m := range rest {
		part := int64(n) * int64(m.Weight)
		targets[m.ID], remainder[m.ID] = int(part/int64(sum)), int(part%int64(sum))
		left -= targets[m.ID]
	}
	if left == 0 {
		return targets
	}
	rest = slices.DeleteFunc(rest, func(m worker) bool { return remainder[m.ID] == 0 })
	last := func(m worker) int { // 0 for the members that are rounded up first
		if loads[m.ID] > targets[m.ID] {
			return 0
		}
		return 1
	}
	slices.SortFunc(rest, func(a, b worker) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(remainder[b.ID], remainder[a.ID]), strings.Compare(a.ID, b.ID))
	})
	for _, m := range rest[:min(left, len(rest))] {
		targets[m.ID]++
	}
	return targets
}

// receiver returns the process that gets the shard. Among the processes that have too few shards, it is the
// process with the highest rank for this shard. Ranks do not change, so most shards get the same receiver
// even if the list changes a little.
func receiver(name string, short []string, lacks map[string]int) (best string) {
	var highest uint64
	for _, id := range short {
		if lacks[id] > 0 {
			if r := rank(name, id); best == "" || r > highest {
				best, highest = id, r
			}
		}
	}
	return best
}

// rankBefore counts the other members that have room for a shard, and whose rank for this shard is higher
// than that of the given member.
func rankBefore(name, id string, members []worker, loads map[string]int) (n int) {
	own := rank(name, id)
	for _, m := range members {
		if m.ID != id && m.hasRoom(loads[m.ID]) && rank(name, m.ID) > own {
			n++
		}
	}
	return n
}

func (m worker) hasRoom(load int) bool { return m.Max == 0 || load < m.Max }

// withRoom returns the members that have room for another shard besides those that they hold elsewhere. What
// is left of the Max of a member is its new Max.
func withRoom(members []worker, elsewhere map[string]int) (open []worker) {
	for _, m := range members {
		if m.hasRoom(elsewhere[m.ID]) {
			m.Max = max(0, m.Max-elsewhere[m.ID])
			open = append(open, m)
		}
	}
	return open
}

// If every member takes as many shards as its Max allows, tooMany returns how many of the n shards are left
// over.
func tooMany(members []worker, n int) int {
	for _, m := range members {
		if m.Max == 0 {
			return 0
		}
		n -= min(n, m.Max)
	}
	return n
}

// rank returns a number that looks random. It is the same in every process, and must not change in a new
// version.
func rank(name, id string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{id, "\x00", name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // the last steps of SplitMix64, because FNV mixes its high bits badly
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
