// Package engine has what the author of a store needs besides the queries to the server. A program that only holds
// leases does not need this package: it uses the store of a package such as etcdlease.
//
// In this package, the server is the system that keeps the leases, such as a database or an object store. A Store
// is what a program opens. A [Backend] is the code of an author that reads and writes records at a server without a
// clock.
//
// To write a store:
//
//  1. Decide who tells the time. If clients can read the clock of the server, implement [lease.Store] as its
//     documentation says. If the server can only compare and swap, implement Backend, as the example does. Then
//     [NewStore] makes the Store, which computes when a lease ends, and step 2 is already done.
//  2. In Swap, call [CheckSwap] first, and return [lease.ErrConflict] if the version differs or if
//     [lease.Snapshot.Ended] is true. In Load as well as in Swap, lock the record before you read the clock:
//     otherwise a Load could show that a lease has expired although a Swap that read the clock earlier is about to
//     renew it.
//  3. Write List with [List], which checks the prefix and yields the error that ends the list, and make its
//     entries with [ListEntry].
//  4. In Watch, add the watch to [Watches]. After each change for which [NeedsSignal] returns true, signal the
//     watches of the name. Close the channels whenever a signal may have been lost. If the server cannot notify
//     its clients, use a [Poller], which does all of this.
//  5. Check the options with [CheckOptions].
//  6. Send each request through a [Gate], so that a server that is too slow for everything still renews the leases
//     that the process holds: a Swap with [Gate.Swap], and every request with [Gate.Do]. For a Backend,
//     [Options.Gate] does so. A [Batcher] sends many renewals in one request.
//  7. Give the store a method Authority that returns the result of [NewAuthority]. Its renewals and releases
//     overtake other requests, and if the server can renew a lease in one request, it does so. A [Store] has such a
//     method already.
//  8. If the client library may not return when a context ends, call it with [Call].
//  9. Register a URL with package open, and run the suites with leasetest/enginetest.
//
// The page docs/write-a-store.md of the repository writes a small store in this order.
//
// # Stores without a clock
//
// The clocks of two machines may show different times. Therefore the server does not store the time at which a
// lease ends, but how much time the lease had left when the entry was committed. When a process first reads a
// version of the entry, it starts to count down the remaining time on its own monotonic clock.
//
// A process can only read an entry after the entry was committed, so the end of the lease that it computes is an
// upper bound, never earlier than the end that was granted. A process that waits for the end of a lease may notice
// it late, but never too early. For this, the clocks of all processes must run at nearly the same rate.
//
// The disadvantage is a longer wait after a crash. A process that has just started may have to wait for the whole
// duration of a lease before it can take over the lease of a crashed holder.
//
// A holder needs a lower bound of the end. The two bounds differ by [lease.Snapshot.Uncertainty]. A process knows a
// lower bound in two cases:
//
//   - The process committed the version itself, after it sent its request.
//   - An earlier request of the process returned an older version. So the current version was committed after the
//     process sent that request.
//
// For the lower bound, the process counts down the remaining time from the moment at which it sent the request. The
// bound holds even if other clocks run faster, provided that all clocks stay within [Options.MaxClockDrift].
//
// If two processes break the same lease, they may compute different upper bounds of its end. A process that reads
// the entries of both breaks uses the earlier end, because a break can only shorten a lease. Two breaks with the
// same ID and Epoch belong to the same term of a lease.
//
// # What a Store remembers
//
// A Store remembers when it first read the current version of a lease, for all watched names and for a limited
// number of others. If it no longer remembers a name, it starts a new countdown when it next reads the record of
// that name. A countdown that starts late can delay the next holder, but it cannot end a lease too early.
//
// The memory also saves requests to the server, as the documentation of [StoreAuthority] says.
package engine
