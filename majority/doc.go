// Package majority decides which part of a cluster survives when its members no longer reach each
// other, in the manner of the strategy lease-majority of Akka. Each member passes what it sees, and is
// told to survive or to go down. No quorum is needed: of all parts, one at most gets the lease, and a
// part with fewer than half of the members asks for it later than the others.
//
// In each part, the member with the lowest name asks. Its grant has two steps: a claim, and a mark that
// names the part. The others wait for the mark, and survive with it. A claim without an answer is given
// up, and released if it is granted late. A lease with a mark is never released: it ends by itself once
// every other part has decided.
//
// Two parts never survive one split under these conditions:
//
//   - All members begin to decide within [Options].Spread of each other.
//   - The lease is not broken or deleted, and its store loses no grant.
//   - A member that goes down stops its work, and is not counted again until it has restarted.
//   - The clocks that measure these times run at nearly the same rate, even while a machine sleeps.
//
// Guard the data with the token as well, because a member that is paused cannot go down.
package majority
