package ui

import (
	"regexp"
	"strings"
)

// The owners that packages shards and slots write, which begin with the process.
var (
	shardOwner  = regexp.MustCompile(`^(.+)#\d+$`)
	memberOwner = regexp.MustCompile(`^(.+) weight=\d+ max=\d+ names=\S*(?: offers=\d+)?$`)
	slotOwner   = regexp.MustCompile(`^(.*) id=\S+ priority=-?\d+ ticket=\d+ n=\d+ process=(\S+)$`)
)

// process returns the process that an owner names, and what the lease is to it: a "shard", its membership in a group
// of shards ("member"), a "slot", a place in the queue for one ("waiting"), a number of slots that it "announces", or
// none of these. The owner of any other lease is the process.
func process(name, owner string) (process, kind string) {
	in := func(folder string) bool { return strings.HasPrefix(name, folder) || strings.Contains(name, "/"+folder) }
	if m := shardOwner.FindStringSubmatch(owner); m != nil && in("shards/") {
		return m[1], "shard"
	}
	if m := memberOwner.FindStringSubmatch(owner); m != nil && in("members/") {
		return m[1], "member"
	}
	if m := slotOwner.FindStringSubmatch(owner); m != nil {
		switch process = m[1] + "/" + m[2]; {
		case in("slots/"):
			return process, "slot"
		case in("waiting/"):
			return process, "waiting"
		case in("n/"):
			return process, "announces"
		}
	}
	return owner, ""
}
