package ui

import (
	"regexp"
	"strings"
)

var slotOwner = regexp.MustCompile(`^(.*) id=\S+ priority=-?\d+ ticket=\d+ n=\d+ process=(\S+)$`)

// kinds are the leases that packages shards and slots make, by the folder in their names. The expression
// matches the owner that these packages write: its groups, joined by a slash, are the name of the process.
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

// process returns the name of the process that has a lease, and the kind of the lease, which is empty if
// neither shards nor slots made it. The owner of such a lease is the name of the process.
func process(name, owner string) (process, kind string) {
	for _, k := range kinds {
		if m := k.owner.FindStringSubmatch(owner); m != nil && strings.Contains("/"+name, k.folder) {
			return strings.Join(m[1:], "/"), k.kind
		}
	}
	return owner, ""
}
