package shards

import (
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

// The owners of leases can be read back, whatever the Owner of the program.
func TestOwners(t *testing.T) {
	for _, owner := range []string{"", "host", "a/b", "x weight=3 max=4", "x offers=2", "a#5"} {
		for _, n := range []int{unlimited, 0, 3} {
			said := digestOf([]string{"a", owner})
			want := worker{Member{ID: "1f", Owner: owner, Weight: 2, Max: 7}, said, n}
			if m, ok := parseMember(want.owner()); !ok || m != want {
				t.Errorf("%q: %+v, want %+v", owner, m, want)
			}
		}
		name, id, order, ok := parseShard(member.ShardLease.Owner(label(owner, "1f"), 9))
		if !ok || name != owner || id != "1f" || order != 9 {
			t.Errorf("%q: %q %q %d", owner, name, id, order)
		}
	}
	// A process has two leases for a moment. A drain lease names its owner, its ID, both, or the whole owner of its lease.
	id := member.ID(lease.ID{}, "p/")
	own := worker{Member: Member{ID: id, Owner: "host", Weight: 1}}.owner()
	for who, drained := range map[string]bool{"host": true, id: true, label("host", id): true, own: true, "hos": false} {
		l, err := read(func(yield func(lease.Entry, error) bool) {
			for name, owner := range map[string]string{memberName("p/", 0): own, memberName("p/", 1): own, drainName("p/", who): "operator"} {
				yield(lease.Entry{Name: name, Record: lease.Record{State: lease.Leased, Owner: owner}}, nil)
			}
		}, "p/")
		if err != nil || len(l.members) != 1 || l.members[0].Drained != drained || (len(l.strays) == 0) != drained {
			t.Errorf("%q drains %+v, and the strays are %q: %v", who, l.members, l.strays, err)
		}
	}
	if _, ok := parseMember("operator"); ok {
		t.Error("a foreign owner is a member")
	}
	if _, _, _, ok := parseShard("operator"); ok {
		t.Error("a foreign owner is a process")
	}
}
