package holder

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A claim describes one ID that this holder has made. The ID is in force while the lease is locked
// under it.
type claim struct {
	id    lease.ID
	phase phase

	// inDoubt is true if an Acquire or a take-over with this ID has an unknown outcome. The request can
	// still reach the authority at any time, and lock the lease under the ID.
	inDoubt bool

	// disclosed is true once Session.ID has returned the ID, to which another holder can then hand the
	// lease over.
	disclosed bool

	// probed is true once the authority has granted a probe with this ID, or refused it because the
	// lease is breaking. The comment of Machine.releaseAnswered explains probes.
	probed bool

	// contexts is the number of WhileHeld contexts of the term with the ID whose work has not
	// stopped.
	contexts int32

	// again is true if the ID has to be released even after the command in flight was answered:
	// the ID became pending after that command was sent, or a late request may have put it in force.
	again bool

	// unsent is true if no release of the ID was sent since it became pending. Until then, the late answer
	// to an earlier release does not settle the ID: it may have come into force again.
	unsent bool

	// due is when an ID in the phase heldUntil is released, and a deferred one even if the work has not
	// stopped. If it is zero, the release waits until the work has stopped.
	due time.Time
}

// A phase is a stage in the life of an ID. These are the usual changes:
//
//	proposed → held      the authority has granted its Acquire
//	proposed → pending   its Acquire was abandoned or granted too late, or Release or ReleaseUncertain finds it in doubt
//	held     → pending   Release, or a loss after which the lease may still be locked
//	held     → deferred  such a loss while work is running under a context of WhileHeld
//	held     → given     HandOver
//	held     → heldUntil the function of Run has returned before the end of MinHold
//	held     → cleared   a loss after which at most a break, which ends by itself, keeps the lease locked
//	pending  → unsettled the outcome of the release is unknown
//	unsettled → pending  Release, Close or ReleaseUncertain, or an answer that shows the ID in force
//	deferred → pending   the work has stopped, the field due has passed, or Release
//	heldUntil → pending the field due has passed, or Release
//	heldUntil → cleared Close: the lease ends by itself
//	given    → pending   the hand-over was refused or overtaken, or Release
//	given    → cleared   the hand-over was granted
//	pending  → cleared   the release was granted, or refused because the ID is not in force
//	cleared  → pending   the ID may have come into force after all
//
// A granted Acquire clears all other IDs. If an ID in the phase cleared is neither in doubt nor
// disclosed, the ledger drops its claim.
type phase uint8

const (
	proposed  phase = iota + 1 // the next Acquire proposes the ID
	held                       // in force, and believed
	pending                    // has to be released as soon as no other command is in flight
	unsettled                  // a release was sent, and its outcome is unknown; it is not repeated without a reason
	deferred                   // has to be released once the work under the ID has stopped
	given                      // a HandOver of the lease under the ID waits, is in flight, or has an unknown outcome
	heldUntil                  // has to be released when the field due has passed
	cleared                    // not in force now; the ID is in doubt or disclosed, so it may come into force later
)

// mostClaims bounds the memory of a holder that never reaches its authority.
const mostClaims = 256

// A ledger is the list of the claims, oldest first. At most one is proposed or held, and at most one is
// given.
type ledger []claim

// find returns the claim of an ID, or nil. A full ledger drops claims, so a request may be answered
// whose claim is gone.
func (l ledger) find(id lease.ID) *claim {
	for i := range l {
		if l[i].id == id {
			return &l[i]
		}
	}
	return nil
}

// newest returns the newest claim in phase p, or nil.
func (l ledger) newest(p phase) *claim {
	for i := range slices.Backward(l) {
		if l[i].phase == p {
			return &l[i]
		}
	}
	return nil
}

// propose adds a claim. A full ledger drops its oldest cleared claim for it, or its oldest claim if
// none is cleared.
func (l *ledger) propose(id lease.ID) *claim {
	if len(*l) == mostClaims {
		i := max(0, slices.IndexFunc(*l, func(c claim) bool { return c.phase == cleared }))
		*l = slices.Delete(*l, i, i+1)
	}
	*l = append(*l, claim{id: id, phase: proposed})
	return &(*l)[len(*l)-1]
}

// clear records that the ID of the claim c is certainly not in force. It keeps the claim, as cleared,
// only if the ID is in doubt or disclosed, and so can come into force later.
func (l *ledger) clear(c *claim) {
	if c == nil {
		return
	}
	if c.inDoubt || c.disclosed {
		c.phase = cleared
		return
	}
	id := c.id
	*l = slices.DeleteFunc(*l, func(c claim) bool { return c.id == id })
}

// clearAllBut calls clear for every claim except the one with the given ID.
func (l *ledger) clearAllBut(id lease.ID) {
	for i := len(*l) - 1; i >= 0; i-- {
		if c := &(*l)[i]; c.id != id {
			l.clear(c)
		}
	}
}

// isDue reports whether the ID has to be released because of its field due.
func (c *claim) isDue(now time.Time) bool {
	return c.waits() && !now.Before(c.due)
}

// waits reports whether the release of the ID waits for the field due.
func (c *claim) waits() bool {
	return (c.phase == deferred || c.phase == heldUntil) && !c.due.IsZero()
}

// retry makes every unsettled ID pending.
func (l ledger) retry() {
	for i := range l {
		if l[i].phase == unsettled {
			l[i].phase = pending
		}
	}
}

// releaseAll makes every ID pending that has to be released: the unsettled, deferred, given and heldUntil
// IDs, and a proposed ID that is in doubt or disclosed. The caller has ended the term that was
// held.
//
// A late request can still lock the lease under a cleared ID that is in doubt. A finite lease ends by
// itself then, but for an infinite one these IDs become pending too.
func (l ledger) releaseAll(infinite bool) {
	for i := range l {
		switch c := &l[i]; c.phase {
		case proposed:
			if c.inDoubt || c.disclosed {
				c.phase = pending
			}
		case unsettled, deferred, given, heldUntil:
			c.phase = pending
		case cleared:
			if infinite && c.inDoubt {
				c.phase = pending
			}
		}
	}
}
