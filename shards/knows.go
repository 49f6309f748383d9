package shards

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
)

// A digest stands for the names that a process knows. During a rolling update, for example, processes know
// different names for a while, and no shard may move to a process that does not know its name. The digest has
// one hash for each of several buckets of names. If two processes have different hashes for a bucket, no
// shard of this bucket moves from one to the other. So a name that only some processes know does not affect
// the other buckets.
type digest [buckets]uint16

const buckets = 24

func bucket(name string) int { return int(rank(name, "bucket") % buckets) }

func digestOf(names []string) (d digest) {
	var sums [buckets]uint64
	for _, name := range names {
		sums[bucket(name)] += rank(name, "digest")
	}
	for i, sum := range sums {
		d[i] = uint16(sum >> 48)
	}
	return d
}

func (d digest) String() string {
	b, _ := binary.Append(nil, binary.BigEndian, d)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseDigest decodes the result of String. For any other text, it returns the digest of a process without
// names.
func parseDigest(s string) (d digest) {
	if b, err := base64.RawURLEncoding.DecodeString(s); err == nil && len(b) == 2*buckets {
		_, _ = binary.Decode(b, binary.BigEndian, &d)
	}
	return d
}

// A member agrees with this process on a bucket if both know the same names in this bucket. The function
// agreeing returns all members that do.
func agreeing(members []worker, own digest, bucket int) (same []worker) {
	for _, m := range members {
		if m.knows[bucket] == own[bucket] {
			same = append(same, m)
		}
	}
	return same
}

// planKnown is like plan, but the members can know different names. The shards of a bucket only move to
// members that know the same names of this bucket as this process. Other members keep the shards that they
// have. The buckets on which the same members agree are planned together.
func planKnown(members []worker, own digest, shards []shard) (moves []move) {
	agree := make([]string, buckets) // the members that agree on each bucket
	for i := range agree {
		for _, m := range agreeing(members, own, i) {
			agree[i] += m.ID + " "
		}
	}
	loads := map[string]int{}
	for _, s := range shards {
		loads[s.holder]++
	}
	for i, ids := range agree {
		if slices.Index(agree, ids) < i {
			continue
		}
		differs := map[string]bool{}
		for _, m := range members {
			differs[m.ID] = m.knows[i] != own[i]
		}
		var part []shard
		elsewhere := maps.Clone(loads)
		for _, s := range shards {
			if agree[bucket(s.name)] == ids && !differs[s.holder] {
				part = append(part, s)
				elsewhere[s.holder]--
			}
		}
		for _, m := range plan(withRoom(agreeing(members, own, i), elsewhere), part) {
			loads[m.from]--
			loads[m.to]++
			moves = append(moves, m)
		}
	}
	return moves
}
