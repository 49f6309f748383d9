package shards

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
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
	var b []byte
	for _, hash := range d {
		b = binary.BigEndian.AppendUint16(b, hash)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseDigest decodes the result of String. For any other text, it returns the digest of a process without
// names.
func parseDigest(s string) (d digest) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 2*buckets {
		return d
	}
	for i := range d {
		d[i] = binary.BigEndian.Uint16(b[2*i:])
	}
	return d
}

// A member agrees with this process on a bucket if both know the same names in this bucket. The function
// agreeing returns all members that do.
func agreeing(members []worker, knows map[string]digest, own digest, bucket int) (same []worker) {
	for _, m := range members {
		if knows[m.id][bucket] == own[bucket] {
			same = append(same, m)
		}
	}
	return same
}

// planKnown is like plan, but the members can know different names. The shards of a bucket only move to
// members that know the same names of this bucket as this process. Other members keep the shards that they
// have.
func planKnown(members []worker, knows map[string]digest, own digest, shards []shard) (moves []move) {
	type group struct {
		key     string
		members []worker
		shards  []shard
	}
	byBucket := make([]*group, buckets)
	var groups []*group
	for i := range byBucket {
		same := agreeing(members, knows, own, i)
		var ids []string
		for _, m := range same {
			ids = append(ids, m.id)
		}
		slices.Sort(ids)
		key := strings.Join(ids, " ")
		at := slices.IndexFunc(groups, func(g *group) bool { return g.key == key })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{key: key, members: same})
		}
		byBucket[i] = groups[at]
	}
	isMember, loads := map[string]bool{}, map[string]int{}
	for _, m := range members {
		isMember[m.id] = true
	}
	for _, s := range shards {
		loads[s.holder]++
		g := byBucket[bucket(s.name)]
		if !isMember[s.holder] || slices.ContainsFunc(g.members, func(m worker) bool { return m.id == s.holder }) {
			g.shards = append(g.shards, s)
		}
	}
	for _, g := range groups {
		inGroup := map[string]int{}
		for _, s := range g.shards {
			inGroup[s.holder]++
		}
		var open []worker
		for _, m := range g.members {
			if elsewhere := loads[m.id] - inGroup[m.id]; m.max == 0 || m.max > elsewhere {
				if m.max > 0 {
					m.max -= elsewhere
				}
				open = append(open, m)
			}
		}
		for _, m := range plan(open, g.shards) {
			loads[m.from]--
			loads[m.to]++
			moves = append(moves, m)
		}
	}
	return moves
}
