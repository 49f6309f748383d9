// Package fencing protects a resource from writers that no longer hold its lease.
//
// A lease cannot stop a holder from acting. A holder can pause between its check and its write, for
// a garbage collection or because its machine is suspended, and continue when another holder has the
// lease. Only the resource can refuse that late write. To do so it remembers the newest fencing token
// that it has seen, its mark, and refuses every older token.
//
// # The order of tokens
//
// Every grant of a lease, and every change to another ID, issues a newer [lease.Token]. A renewal does
// not. Well-formed tokens have 20 digits, so that they have the same order as numbers and as strings,
// and a database can compare them as text. Tokens of different leases cannot be compared: every lease
// needs a mark of its own.
//
// # The rules of a guard
//
//  1. After a write under a newer token, no write under an older one is admitted.
//  2. A holder calls Advance before its first read. Otherwise a late write of the previous holder can
//     happen between the read and the write of the new holder, and is lost. With Advance, all
//     admitted sections of reading and writing are serializable.
//  3. The mark is stored atomically with the data that it guards.
//  4. Equal tokens are admitted, because one holder writes many times. Empty and malformed tokens are
//     refused, and do not change the mark.
//  5. The mark never falls: not when a write fails, and not when the process restarts.
//
// # Which guard to use
//
// A guard belongs to the resource. It must be shared by all writers and kept with the data: a guard in
// the memory of each writer guards nothing.
//
// For data in memory, or behind a single process, use a [Guard]. It runs one function at a time, in
// an order in which tokens never fall. Its mark lasts as long as the process. If the data lasts
// longer, store the mark, and restore it with [NewGuard].
//
// For data in a database or a file, store the mark beside the data, as a [Mark], and call [Advance] in
// the transaction that writes the data.
//
// For data behind HTTP, [Handler] guards a handler by a header of the request, and [Transport] sends
// that header.
package fencing
