package shards

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

func memberName(prefix string, i int) string { return member.MemberLease.Name(prefix, i) }
func shardName(prefix, name string) string   { return member.ShardLease.Name(prefix, name) }
func drainName(prefix, who string) string    { return prefix + "drain/" + who }

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

// memberOwner returns the owner for the lease with which a process announces itself.
func memberOwner(label string, weight, most, offers int, knows digest) string {
	values := []any{weight, most, knows}
	if offers != unlimited {
		values = append(values, offers)
	}
	return member.MemberLease.Owner(label, values...)
}

func parseMember(owner string) (m Member, offers int, knows digest, ok bool) {
	label, v := member.MemberLease.Cut(owner)
	m.Owner, m.ID = parseLabel(label)
	var err1, err2, err3 error
	m.Weight, err1 = strconv.Atoi(v[0])
	m.Max, err2 = strconv.Atoi(v[1])
	if offers = unlimited; v[3] != "" {
		offers, err3 = strconv.Atoi(v[3])
	}
	ok = errors.Join(err1, err2, err3) == nil && m.Max >= 0 && offers >= unlimited && m.ID != "" && m.Weight >= 1 && m.Weight <= maxWeight
	return m, offers, parseDigest(v[2]), ok
}

func parseShard(owner string) (name, id string, order uint64, ok bool) {
	label, v := member.ShardLease.Cut(owner)
	order, err := strconv.ParseUint(v[0], 10, 63)
	name, id = parseLabel(label)
	return name, id, order, err == nil && id != ""
}

// A listing is a list of the leases of a group.
type listing struct {
	members []Member
	offers  map[string]int    // for each ID of a member in quarantine, the largest number of shards that it accepts
	knows   map[string]digest // for each ID of a member, the names that it knows
	shards  map[string]listed // the shards that are locked, or whose record is not valid
	bad     map[string]error  // why the record of a shard is not valid
	strays  []string          // the drain leases that name no member, sorted and without their prefix
}

type listed struct {
	Shard
	order   uint64
	foreign bool // a program that is not a process of the group holds the lease
}

// read reads the leases of a group from a list. If the record of a shard is not valid, the shard counts as
// foreign.
func read(list iter.Seq2[lease.Entry, error], prefix string) (l listing, err error) {
	l.offers, l.knows, l.shards, l.bad = map[string]int{}, map[string]digest{}, map[string]listed{}, map[string]error{}
	drains := map[string]bool{} // whether the lease names a member
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
			// The process may have two leases, because it has not released an earlier one yet.
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
			if _, group := member.Process(e.Name, e.Record.Owner); group == "" { // skip a lease of another group whose prefix begins with this one
				drains[name] = false
			}
		}
	}
	for i := range l.members {
		m := &l.members[i]
		for name := range drains {
			if namesMember(name, m) {
				drains[name], m.Drained = true, true
			}
		}
	}
	maps.DeleteFunc(drains, func(_ string, names bool) bool { return names })
	l.strays = slices.Sorted(maps.Keys(drains))
	return l, nil
}

// namesMember reports whether a drain lease is for the process m. The parameter name is the last part of the
// drain lease's name, for example the ID of the process. It can also be the whole owner of the process's own
// lease.
func namesMember(name string, m *Member) bool {
	who, _ := member.MemberLease.Cut(name)
	return name == m.ID || name == m.Owner || who == label(m.Owner, m.ID)
}
