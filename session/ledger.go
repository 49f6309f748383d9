package session

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A claim is one ID that this holder made, and all that is known of it. Each ID is in exactly
// one phase.
type claim struct {
	id    lease.ID
	phase phase

	// inDoubt: an Acquire of the ID, or a change to it, had no certain outcome. The request may
	// still arrive at the authority, at any time, and put the ID in force.
	inDoubt bool

	// disclosed: Session.ID returned the ID, so another holder may hand the lease over to it.
	disclosed bool

	// probed: the ID of an infinite lease was acquired and released once to settle it.
	probed bool

	// contexts of WhileHeld for the incarnation that were not given back.
	contexts int32

	// due is when a deferred release is sent even if contexts were not given back; zero: never.
	due time.Time
}

// A phase is where an ID is in its life.
type phase uint8

const (
	proposed phase = iota + 1 // the next Acquire proposes it
	held                      // in force, and believed
	pending                   // to be released
	deferred                  // to be released once the work of its incarnation has stopped
	given                     // a HandOver of it waits, is under way, or has no certain outcome; Release and Close make it pending
	settled                   // not in force, but it may come into force: it is in doubt or disclosed
)

// mostClaims bounds the memory of a holder that can never reach its authority.
const mostClaims = 256

// A ledger holds the claims, oldest first. At most one of them is proposed or held, and at most
// one is given.
type ledger []claim

// find returns the claim of an ID, or nil.
func (l ledger) find(id lease.ID) *claim {
	for i := range l {
		if l[i].id == id {
			return &l[i]
		}
	}
	return nil
}

// newest returns the newest claim in a phase, or nil.
func (l ledger) newest(p phase) *claim {
	for i := range slices.Backward(l) {
		if l[i].phase == p {
			return &l[i]
		}
	}
	return nil
}

// propose adds a claim. When the ledger is full, the oldest settled claim is dropped; if none is
// settled, the oldest one.
func (l *ledger) propose(id lease.ID) *claim {
	if len(*l) == mostClaims {
		i := max(0, slices.IndexFunc(*l, func(c claim) bool { return c.phase == settled }))
		*l = slices.Delete(*l, i, i+1)
	}
	*l = append(*l, claim{id: id, phase: proposed})
	return &(*l)[len(*l)-1]
}

// settle notes that an ID is certainly not in force. Its claim is dropped unless the ID may come
// into force later.
func (l *ledger) settle(c *claim) {
	if c == nil {
		return
	}
	if c.inDoubt || c.disclosed {
		c.phase = settled
		return
	}
	id := c.id
	*l = slices.DeleteFunc(*l, func(c claim) bool { return c.id == id })
}

// settleAllBut notes that no ID but the given one is in force.
func (l *ledger) settleAllBut(id lease.ID) {
	for i := len(*l) - 1; i >= 0; i-- {
		if c := &(*l)[i]; c.id != id {
			l.settle(c)
		}
	}
}

// releaseAll makes every claim pending that may be in force, even one that is being handed over. A finite lease
// that comes into force late ends by itself; an infinite one is released again each time.
func (l ledger) releaseAll(infinite bool) {
	for i := range l {
		switch c := &l[i]; c.phase {
		case proposed:
			if c.inDoubt || c.disclosed {
				c.phase = pending
			}
		case deferred, given:
			c.phase = pending
		case settled:
			if infinite && c.inDoubt {
				c.phase = pending
			}
		}
	}
}
