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

// owner returns the owner for the lease with which a process announces itself.
func (m worker) owner() string {
	values := []any{m.Weight, m.Max, m.knows}
	if m.offers != unlimited {
		values = append(values, m.offers)
	}
	return member.MemberLease.Owner(label(m.Owner, m.ID), values...)
}

func parseMember(owner string) (m worker, ok bool) {
	label, v := member.MemberLease.Cut(owner)
	m.Owner, m.ID = parseLabel(label)
	m.knows = parseDigest(v[2])
	var err1, err2, err3 error
	m.Weight, err1 = strconv.Atoi(v[0])
	m.Max, err2 = strconv.Atoi(v[1])
	if m.offers = unlimited; v[3] != "" {
		m.offers, err3 = strconv.Atoi(v[3])
	}
	return m, errors.Join(err1, err2, err3) == nil && m.Max >= 0 && m.offers >= unlimited && m.ID != "" && m.Weight >= 1 && m.Weight <= maxWeight
}

func parseShard(owner string) (name, id string, order uint64, ok bool) {
	label, v := member.ShardLease.Cut(owner)
	order, err := strconv.ParseUint(v[0], 10, 63)
	name, id = parseLabel(label)
	return name, id, order, err == nil && id != ""
}

// A listing is a list of the leases of a group.
type listing struct {
	members []worker
	shards  map[string]listed // the shards that are locked, or whose record is not valid; the Err says why it is not
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
	l.shards = map[string]listed{}
	drains := map[string]bool{} // whether the lease names a member
	for e, err := range list {
		if err != nil && e.Name == "" {
			return listing{}, err
		}
		rest, _ := strings.CutPrefix(e.Name, prefix)
		kind, name, _ := strings.Cut(rest, "/")
		switch {
		case kind == "shards" && err != nil:
			l.shards[name] = listed{Shard: Shard{Name: name, Err: err}, foreign: true}
		case err != nil || !e.Record.State.Locked():
		case kind == "members":
			m, ok := parseMember(e.Record.Owner)
			// The process may have two leases, because it has not released an earlier one yet.
			if ok && member.IsOf(m.ID, prefix) && !slices.ContainsFunc(l.members, func(o worker) bool { return o.ID == m.ID }) {
				l.members = append(l.members, m)
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
func namesMember(name string, m *worker) bool {
	who, _ := member.MemberLease.Cut(name)
	return name == m.ID || name == m.Owner || who == label(m.Owner, m.ID)
}
