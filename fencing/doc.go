// Package fencing protects a resource from writers that do not hold its lease any more.
//
// A lease excludes beliefs, not actions: a holder can stop between its check and its
// write, for a garbage collection or a suspended machine, and go on when another holds the
// lease. Only the resource itself can refuse that late write. It does so by remembering
// the newest fencing token it was shown, its mark, and refusing every older one.
//
// # The order of tokens
//
// A [lease.Token] is newer for every grant of a lease, and for every change to another ID;
// it is the same through renewals. Its order is that of the number it is written from;
// since well-formed tokens are 20 digits it is also that of the strings, so that a database
// can compare them as they stand ("9" > "10" cannot happen). It is an order of the grants of
// one lease: tokens of leases with different names say nothing about each other, so every
// lease needs a mark of its own.
//
// # The rules of a guard
//
//  1. After a write under a newer token, no write under an older one is admitted.
//  2. A holder calls Advance before its first read. Without it a late write of the last
//     holder can slip in between the read and the write of the new one, and is lost. With
//     it, all sections of reading and writing that are admitted are serializable.
//  3. The mark is kept atomically with the data that it guards.
//  4. Equal tokens pass, since one holder writes many times. Empty and malformed tokens
//     never do, and leave no trace.
//  5. The mark never falls, neither when a write fails nor when the process starts again.
//
// # Which guard
//
// For data in memory, or behind a single process, a [Guard] is enough: it lets one
// function run at a time, in an order in which tokens never fall. Its mark is as
// lasting as the process: if the data lasts longer, make the next Guard of the mark that
// was kept with [NewGuard].
//
// For data in a database or a file, keep the mark beside it: a [Mark] is shown the token
// by [Advance] within the transaction that writes the data.
//
// Over HTTP, [Handler] guards a handler by a header, and [Transport] sends it.
package fencing
