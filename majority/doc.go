// Package majority decides which part of a cluster survives a split, when its members no longer reach each
// other. The package works like the strategy lease-majority of Akka. Each member calls [Decider.Decide] with
// the members that it reaches, and learns whether it must survive or go down. No quorum is needed, because at
// most one part of the cluster gets the lease. If a part contains fewer than half of the members, it waits
// for 2 s, or as long as [Options].Delay says, before it requests the lease. The larger part therefore
// usually gets the lease.
//
// In each part of the cluster, the member with the lowest name acquires the lease. Then this member writes a
// mark into the lease. The mark is a text that identifies the part of the cluster. The other members of the
// part read the lease repeatedly until they see the mark, and then their calls of Decide return [Survive]. If
// the request to acquire the lease is not answered in time, the member stops waiting, and releases the lease
// in case the lease is granted later. Once a member has begun to write the mark, it never releases the lease.
// The lease then expires by itself, but not before every other part of the cluster has made its decision.
//
// Two parts never survive the same split under these conditions:
//
//   - All members call Decide within [Options].Spread of each other.
//   - The lease is not broken or deleted, and its store loses no grant.
//   - A member that goes down stops its work, and no other member counts it again until it has restarted.
//   - The clocks of all members and of the authority run at nearly the same rate, even while a machine
//     sleeps.
//
// Guard the data with the fencing token as well, because a member that is paused cannot go down.
package majority
