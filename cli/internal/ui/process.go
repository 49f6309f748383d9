package ui

import (
	"regexp"
	"strings"
)

var slotOwner = regexp.MustCompile(`^(.*) id=\S+ priority=-?\d+ ticket=\d+ n=\d+ process=(\S+)$`)

// kinds are the leases of packages shards and slots, with the owners that they write. These begin with the process.
var kinds = []struct {
	folder, kind string
	owner        *regexp.Regexp
}{
	{"/shards/", "shard", regexp.MustCompile(`^(.+)#\d+$`)},
	{"/members/", "member", regexp.MustCompile(`^(.+) weight=\d+ max=\d+ names=\S*(?: offers=\d+)?$`)},
	{"/slots/", "slot", slotOwner},
	{"/waiting/", "waiting", slotOwner}, // in the queue for a slot
	{"/n/", "announces", slotOwner},     // the number of slots
}

// process returns the process that an owner names, and what the lease is to it, if it is one of the kinds. The owner of
// any other lease is the process.
func process(name, owner string) (process, kind string) {
	for _, k := range kinds {
		if m := k.owner.FindStringSubmatch(owner); m != nil && strings.Contains("/"+name, k.folder) {
			return strings.Join(m[1:], "/"), k.kind
		}
	}
	return owner, ""
}
