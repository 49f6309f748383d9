// Package observe makes a [lease.Store] from an engine whose clock cannot be read, such as etcd or
// Kubernetes. The engine must be able to compare and swap.
//
// To write such a store, implement [Engine] and pass the implementation to [New]. An Engine only
// loads and swaps entries. The Store computes when a lease ends. A program that only holds leases
// does not need to call this package. Such a program uses the store of a package such as etcdlease.
//
// # Time
//
// The clocks of two machines may show different times. An engine therefore does not store the time
// at which a lease ends. The engine stores how much time the lease had left when the entry was
// committed. When a process first reads a version of the entry, the process starts to count down
// the remaining time on its own monotonic clock.
//
// A process reads an entry only after the entry was committed, so the end of the lease that the
// process computes is never earlier than the end that was granted. The computed end is an upper
// bound. A process that waits for the end of a lease may notice the end late, but never too early.
// Two clocks may show different times, but their rates must be nearly equal.
//
// The disadvantage is a longer wait after a crash. A process that has just started may have to wait
// for the whole duration of a lease before it can take over the lease of a crashed holder.
//
// A holder needs a lower bound of the end. The upper bound and the lower bound differ by
// [lease.Snapshot.Uncertainty]. A process knows a lower bound in two cases:
//
//   - The process committed the version itself. The version was committed after the process sent its
//     request.
//   - An earlier request of the process returned an older version. The current version was
//     committed after the process sent the earlier request.
//
// In both cases, the process sent a request before the commit. For the lower bound, the process
// counts down the remaining time from the moment at which it sent the request. The lower bound
// holds even if other clocks run faster, provided that all clocks stay within
// [Options.MaxClockDrift].
//
// If two processes break the same lease, they may compute different upper bounds of the end of the
// lease. If a process reads the entries of both breaks, it uses the earlier end, because a break
// can only shorten a lease. Two breaks with the same ID and Epoch belong to the same incarnation of
// a lease.
//
// # Memory
//
// A Store remembers the time at which it first read the current version of a lease. A Store
// remembers the time of the first reading for all watched names, and for a limited number of other
// names. If a Store has forgotten a name, the Store starts a new countdown when it next reads the
// record of the name. A countdown that starts late can delay the next holder, but it cannot end a
// lease too early.
//
// The memory also saves round trips to the engine. If a request changes the record of a lease, an
// [Authority] first tries a Swap without a Load. The Swap without a Load is based on the entry that
// the Store remembers, so a renewal needs one round trip.
package observe
