package shards

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

// The names and owners of the leases of a group. Processes of different versions of the library share them.

func memberName(prefix string, i int) string { return prefix + "members/" + strconv.Itoa(i) }
func shardName(prefix, name string) string   { return prefix + "shards/" + name }
func drainName(prefix, who string) string    { return prefix + "drain/" + who }

// label returns the owner of a process and its ID.
func label(owner, id string) string {
	if owner == "" {
		return id
	}
	return owner + "/" + id
}

func parseLabel(s string) (owner, id string) {
	i := strings.LastIndexByte(s, '/')
	return s[:max(i, 0)], s[i+1:]
}

// memberOwner returns the owner of the lease with which a process announces itself.
func memberOwner(label string, weight, most, offers int, knows digest) string {
	owner := fmt.Sprintf("%s weight=%d max=%d names=%s", label, weight, most, knows)
	if offers != unlimited {
		owner += fmt.Sprintf(" offers=%d", offers)
	}
	return owner
}

func parseMember(owner string) (m Member, offers int, knows digest, ok bool) {
	offers = unlimited
	if rest, n, ok := cutNumber(owner, " offers="); ok {
		owner, offers = rest, int(n)
	}
	if i := strings.LastIndex(owner, " names="); i >= 0 {
		owner, knows = owner[:i], parseDigest(owner[i+len(" names="):])
	}
	rest, most, ok1 := cutNumber(owner, " max=")
	rest, weight, ok2 := cutNumber(rest, " weight=")
	name, id := parseLabel(rest)
	inRange := weight >= 1 && weight <= maxWeight
	ok = ok1 && ok2 && id != "" && inRange
	return Member{ID: id, Owner: name, Weight: int(weight), Max: int(most)}, offers, knows, ok
}

// shardOwner returns the owner of the lease of a shard. The process gives shards with a high order first.
func shardOwner(label string, order uint64) string { return fmt.Sprintf("%s#%d", label, order) }

func parseShard(owner string) (name, id string, order uint64, ok bool) {
	rest, n, ok := cutNumber(owner, "#")
	name, id = parseLabel(rest)
	return name, id, n, ok && id != ""
}

// cutNumber splits s after the last sep, which a number must follow.
func cutNumber(s, sep string) (rest string, n uint64, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.ParseUint(s[i+len(sep):], 10, 63)
	return s[:i], n, err == nil
}

// A listing is a list of the leases of a group.
type listing struct {
	members []Member
	offers  map[string]int    // the most shards of each member in quarantine, by its ID
	knows   map[string]digest // the names that each member knows, by its ID
	shards  map[string]listed // the leases of shards that are locked, or whose record is not valid
	bad     map[string]error  // why the record of a shard is not valid
}

type listed struct {
	Shard
	order   uint64
	foreign bool // the lease is locked, and not by a process of the group
}

// read reads a list. A shard whose record is not valid counts as foreign.
func read(list iter.Seq2[lease.Entry, error], prefix string) (l listing, err error) {
	l.offers, l.knows, l.shards, l.bad = map[string]int{}, map[string]digest{}, map[string]listed{}, map[string]error{}
	drained := map[string]bool{}
	for e, err := range list {
		if err != nil && e.Name == "" {
			return listing{}, err
		}
		rest, _ := strings.CutPrefix(e.Name, prefix)
		kind, name, _ := strings.Cut(rest, "/")
		switch {
		case kind == "shards" && err != nil:
			l.bad[name] = err
			l.shards[name] = listed{Shard: Shard{Name: name}, foreign: true}
		case err != nil || !e.Record.State.Locked():
		case kind == "members":
			m, offers, knows, ok := parseMember(e.Record.Owner)
			// An earlier lease of the process may not be released yet.
			if ok && member.IsOf(m.ID, prefix) && !slices.ContainsFunc(l.members, func(o Member) bool { return o.ID == m.ID }) {
				l.members = append(l.members, m)
				l.knows[m.ID] = knows
				if offers != unlimited {
					l.offers[m.ID] = offers
				}
			}
		case kind == "shards":
			s := listed{Shard: Shard{Name: name, Owner: e.Record.Owner, Token: e.Record.Token(), State: e.Record.State}}
			if owner, id, order, ok := parseShard(e.Record.Owner); ok && member.IsOf(id, prefix) {
				s.Owner, s.ID, s.order = owner, id, order
			} else {
				s.foreign = true
			}
			l.shards[name] = s
		case kind == "drain":
			drained[name] = true
		}
	}
	for i := range l.members {
		m := &l.members[i]
		m.Drained = drained[m.ID] || drained[m.Owner]
	}
	return l, nil
}
