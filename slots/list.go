package slots

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

func slotName(prefix string, i int) string      { return member.SlotLease.Name(prefix, i) }
func waiterName(prefix string, i int) string    { return member.WaitingLease.Name(prefix, i) }
func announcedName(prefix string, i int) string { return member.AnnouncingLease.Name(prefix, i) }
func ownerOf(owner string, w waiter) string {
	return member.SlotLease.Owner(owner, w.id, w.priority, w.ticket, w.n, w.process)
}

func parseOwner(s string) (w waiter, ok bool) {
	owner, v := member.SlotLease.Cut(s)
	priority, err1 := strconv.Atoi(v[1])
	ticket, err2 := strconv.ParseUint(v[2], 10, 63)
	n, err3 := strconv.Atoi(v[3])
	return waiter{id: v[0], priority: priority, ticket: ticket, n: n, process: v[4], owner: owner}, errors.Join(err1, err2, err3) == nil && v[0] != ""
}

type listing struct {
	waiters   []waiter
	locked    map[int]holder
	known     map[string]int // for each process, the largest number of slots in the owners of its slots and waiters
	announced map[string]int // for each process, the number of slots that SetN has announced
}

// Processes can have different numbers of slots. The method largest returns the largest of these numbers. The
// given process has n slots.
func (l listing) largest(process string, n int) int {
	for p, m := range l.known {
		if later, ok := l.announced[p]; ok {
			m = later
		}
		if p != process {
			n = max(n, m)
		}
	}
	return n
}

// list lists the leases under the prefix. If the record of a slot cannot be read, the slot counts as locked.
func (s *Slots) list(ctx context.Context) (listing, error) {
	l := listing{locked: map[int]holder{}, known: map[string]int{}, announced: map[string]int{}}
	for e, err := range s.lister.List(ctx, s.prefix) {
		if err != nil && e.Name == "" {
			return l, err
		}
		kind, name, _ := strings.Cut(strings.TrimPrefix(e.Name, s.prefix), "/")
		w, ok := parseOwner(e.Record.Owner)
		ok = ok && member.IsOf(w.id, s.prefix)
		switch i, bad := strconv.Atoi(name); {
		case err == nil && !e.Record.State.Locked():
		case kind == "slots" && bad == nil && i >= 0:
			l.locked[i] = holder{waiter: w, breaking: e.Record.State == lease.Breaking, foreign: err != nil || !ok}
			if !l.locked[i].foreign {
				l.known[w.process] = max(l.known[w.process], w.n)
			}
		case kind == "waiting" && bad == nil && err == nil && ok:
			w.number = i
			// While a waiter moves from one lease to another, it has two leases.
			if !slices.ContainsFunc(l.waiters, func(o waiter) bool { return o.id == w.id }) {
				l.waiters = append(l.waiters, w)
			}
			l.known[w.process] = max(l.known[w.process], w.n)
		case kind == "n" && bad == nil && err == nil && ok:
			l.announced[w.process] = w.n
		}
	}
	return l, nil
}
