// Package engine helps the author of a store with everything but the requests to the server. A program that
// only holds leases does not need this package, because it uses the store of a package such as etcdlease.
//
// In this package, the server is the system that stores the leases, such as a database or an object store. A
// [Store] is the client of a server without a clock. The author of such a store writes a [Backend], which
// reads and writes records at the server.
//
// To write a store:
//
//  1. If clients can read the clock of the server, implement [lease.Store] as its documentation says. If the
//     server can only compare and swap, implement Backend, as the example does. Then [NewStore] makes the
//     Store, which computes when a lease ends, and step 2 is already done.
//  2. In Swap, call [CheckSwap] first, and return [lease.ErrConflict] if the version differs or if
//     [lease.Snapshot.Ended] is true. In Load as well as in Swap, lock the record before you read the clock.
//     Otherwise a Load could show that a lease has expired although a Swap that read the clock earlier is
//     about to renew it. If the server is a database, a [Row] has the columns of a record.
//  3. Use the function [List], or [ListPages] if the server sorts the names, to implement the method List of
//     the store. The function checks the prefix, and yields the error that ends the list. Make the entries
//     with [ListEntry].
//  4. In Watch, add the watch to [Watches]. After each change for which [NeedsSignal] returns true, signal
//     the watches of the name. Close the channels whenever a signal may have been lost. If the server cannot
//     notify its clients, use a [Poller], which does all of this.
//  5. Check the options with [CheckOptions]. If the server must be checked as well, for example whether a bucket
//     exists, do so before the first request, with [CheckOnce].
//  6. Send each Swap through [Gate.Swap], and every request through [Gate.Do]. A [Gate] makes sure that an
//     overloaded server still renews the leases that the process holds. For a Backend, set [Options.Gate]
//     instead. To send many renewals in one request, use a [Batcher].
//  7. Give the store a method Authority that returns the result of [NewAuthority]. Its renewals and releases
//     overtake other requests, and if the server can renew a lease in one request, so does the authority. A
//     [Store] already has such a method.
//  8. Some client libraries do not always return when the context of a call ends. If yours does not, make its
//     calls with [Call].
//  9. Register a URL with package open, and run the suites with leasetest/enginetest.
//
// The page docs/write-a-store.md of the repository writes a small store step by step.
//
// # Stores without a clock
//
// The clocks of two machines may show different times. Therefore the server does not store the time at which a
// lease ends, but how much time the lease had left when the entry was committed. When a process first reads a
// version of the entry, it starts to count down the remaining time on its own monotonic clock.
//
// A process reads an entry only after the entry was committed. The process therefore starts to count down
// late, and the end that it computes is an upper bound: it is never earlier than the real end. A waiting
// process may therefore notice the end of a lease late, but never too early. For this, the clocks of all
// processes must run at nearly the same rate.
//
// The disadvantage is that a process that has just started may have to wait for the whole duration of a lease
// before it can take over the lease of a crashed holder.
//
// A holder needs a lower bound of the end of its lease. The upper and the lower bound differ by
// [lease.Snapshot.Uncertainty]. A process knows a lower bound in two cases:
//
//   - The process wrote the entry itself, so the entry was committed after the process sent its request.
//   - An earlier request of the process returned an older version, so the entry was committed after the
//     process sent that request.
//
// For the lower bound, the process counts down the remaining time from the moment at which it sent the
// request. The bound holds even if other clocks run faster, provided that all clocks stay within
// [Options.MaxClockDrift].
//
// If two processes break the same lease, they may compute different upper bounds of its end. A process that
// reads the entries of both breaks uses the earlier end, because a break can only shorten a lease. Two breaks
// belong to the same term of a lease if they have the same ID and Epoch.
//
// # What a Store remembers
//
// For all watched names, and for a limited number of others, a Store remembers when it first read the current
// version of the lease. If the Store has dropped a name, it starts a new countdown when it next reads the
// record of that name. Because the new countdown starts late, the next holder may have to wait longer, but no
// lease ends too early.
//
// A [StoreAuthority] also uses the remembered entries to send fewer requests to the server.
package engine
