// Package fencing protects a resource from writers that no longer hold its lease.
//
// A lease cannot stop a holder from acting. A holder may pause after it has checked its lease and
// before it writes, for example for a garbage collection. When it continues, another holder may have
// the lease. The resource must then refuse the late write. The resource stores the newest fencing
// token that it has seen. This token is the mark of the resource. The resource refuses every token
// that is older than its mark.
//
// # The order of tokens
//
// Each grant of a lease issues a newer [lease.Token], and so does each change to another ID. A
// renewal issues none. Every well-formed token has 20 digits, so tokens have the same order as
// numbers and as strings. A database can compare them as text. Tokens of different leases cannot be
// compared, so every lease needs a mark of its own.
//
// # The rules of a guard
//
//  1. After a write with a newer token, no write with an older one is admitted.
//  2. A holder calls Advance before its first read. Otherwise a late write of the previous holder
//     may happen between the read and the write of the new holder, and is then overwritten. With
//     Advance, all admitted sections of reading and writing are serializable.
//  3. The mark is stored atomically with the data that it guards.
//  4. Equal tokens are admitted, because one holder writes many times. Empty and malformed tokens
//     are refused, and do not change the mark.
//  5. The mark never falls, even if a write fails or the process restarts.
//
// # Which guard to use
//
// A guard belongs to the resource. All writers must share one guard, and the guard must be kept with
// the data. If each writer has a guard in its own memory, the data is not protected.
//
// For data in memory, or behind a single process, use a [Guard]. A Guard runs one function at a
// time, and never runs a function with an older token after one with a newer token. Its mark lasts
// as long as the process. If the data lasts longer than the process, store the mark, and restore it
// with [NewGuard].
//
// For data in a database or a file, store a [Mark] beside the data. Call [Advance] in the
// transaction that writes the data.
//
// For data behind HTTP, use [Handler] in the server. Handler wraps another handler, and reads the
// token from a header of the request. Use [Transport] in the client to send this header.
package fencing
