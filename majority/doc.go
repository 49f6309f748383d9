// Package majority decides which part of a cluster survives a split, when its members no longer reach each
// other. The package works like the strategy lease-majority of Akka. Each member calls [Decider.Decide] with
// the members that it reaches, and learns whether it must survive or go down. No quorum is needed, because at
// most one part of the cluster gets the lease. A part with fewer than half of the members requests the lease
// later than the others.
//
// In each part, the member with the lowest name requests the lease, in two steps: it acquires the lease, and
// then marks the lease with the name of the part. The other members wait until they see the mark of their
// part, and then survive. If an acquire is not answered in time, the member stops waiting, and releases the
// lease in case the lease is granted later. A lease with a mark is never released: it ends by itself after
// every other part has decided.
//
// Two parts never survive the same split under these conditions:
//
//   - All members call Decide within [Options].Spread of each other.
//   - The lease is not broken or deleted, and its store loses no grant.
//   - A member that goes down stops its work, and no other member counts it again until it has restarted.
//   - The clocks of all members run at nearly the same rate, even while a machine sleeps.
//
// Guard the data with the fencing token as well, because a member that is paused cannot go down.
package majority
