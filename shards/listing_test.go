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
			m, offers, knows, ok := parseMember(memberOwner(label(owner, "1f"), 2, 7, n, said))
			if want := (Member{ID: "1f", Owner: owner, Weight: 2, Max: 7}); !ok || m != want || offers != n || knows != said {
				t.Errorf("%q: %+v offers %d, want %d; knows %v, want %v", owner, m, offers, n, knows, said)
			}
		}
		name, id, order, ok := parseShard(member.ShardLease.Owner(label(owner, "1f"), 9))
		if !ok || name != owner || id != "1f" || order != 9 {
			t.Errorf("%q: %q %q %d", owner, name, id, order)
		}
	}
	l, err := read(func(yield func(lease.Entry, error) bool) {
		for i := range 2 {
			yield(lease.Entry{Name: memberName("p/", i), Record: lease.Record{State: lease.Leased, Owner: memberOwner(member.ID(lease.ID{}, "p/"), 1, 0, 0, digest{})}}, nil)
		}
	}, "p/")
	if len(l.members) != 1 || err != nil {
		t.Errorf("two leases of a process are members %+v: %v", l.members, err)
	}
	if _, _, _, ok := parseMember("operator"); ok {
		t.Error("a foreign owner is a member")
	}
	if _, _, _, ok := parseShard("operator"); ok {
		t.Error("a foreign owner is a process")
	}
}
