package session

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A claim describes one ID that this holder has made. Each claim is in exactly one phase.
type claim struct {
	id    lease.ID
	phase phase

	// inDoubt is true if an Acquire of the ID, or a change to the ID, has an unknown outcome. A
	// request with an unknown outcome may still reach the authority at any time, and put the ID in
	// force.
	inDoubt bool

	// disclosed is true once Session.ID has returned the ID. Another holder may then hand the lease
	// over to the ID.
	disclosed bool

	// probed is true once the ID of an infinite lease was acquired and released only to change the
	// record.
	probed bool

	// contexts is the number of contexts of WhileHeld for the incarnation that are still in use.
	contexts int32

	// due is the time at which a deferred release is sent even if contexts are still in use. Zero
	// means never.
	due time.Time
}

// A phase is a stage in the life of an ID.
type phase uint8

const (
	proposed phase = iota + 1 // the next Acquire proposes it
	held                      // in force, and believed
	pending                   // has to be released
	deferred                  // has to be released once the work of its incarnation has stopped
	given                     // a HandOver of it waits, is in flight, or has an unknown outcome
	settled                   // not in force now; it is in doubt or disclosed, so it may come into force later
)

// mostClaims is the largest number of claims, which bounds the memory of a holder that never reaches
// its authority.
const mostClaims = 256

// A ledger is the list of the claims, oldest first. At most one claim is in phase proposed or held,
// and at most one is in phase given.
type ledger []claim

// find returns the claim of an ID, or nil if there is none.
func (l ledger) find(id lease.ID) *claim {
	for i := range l {
		if l[i].id == id {
			return &l[i]
		}
	}
	return nil
}

// newest returns the newest claim in phase p, or nil if there is none.
func (l ledger) newest(p phase) *claim {
	for i := range slices.Backward(l) {
		if l[i].phase == p {
			return &l[i]
		}
	}
	return nil
}

// propose adds a claim. If the ledger is full, the oldest settled claim is dropped. If no claim is
// settled, the oldest claim is dropped.
func (l *ledger) propose(id lease.ID) *claim {
	if len(*l) == mostClaims {
		i := max(0, slices.IndexFunc(*l, func(c claim) bool { return c.phase == settled }))
		*l = slices.Delete(*l, i, i+1)
	}
	*l = append(*l, claim{id: id, phase: proposed})
	return &(*l)[len(*l)-1]
}

// settle records that an ID is certainly not in force. If a late request or another holder may still
// put the ID in force, settle keeps the claim in phase settled. Otherwise it drops the claim.
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

// settleAllBut calls settle for every claim except the one with the given ID.
func (l *ledger) settleAllBut(id lease.ID) {
	for i := len(*l) - 1; i >= 0; i-- {
		if c := &(*l)[i]; c.id != id {
			l.settle(c)
		}
	}
}

// releaseAll marks every ID that may be in force as pending, which means that it has to be released.
// This includes an ID that is being handed over. The settled IDs of a finite lease are not released
// again, because a finite lease ends by itself even if a late request acquires it. For an infinite
// lease, each call of releaseAll releases every ID again that a late request may still put in force.
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
