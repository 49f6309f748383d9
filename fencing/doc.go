// Package fencing protects a resource from writers that no longer hold its lease.
//
// A lease cannot stop a holder from acting. For example, a garbage collection may pause a holder after it has
// checked its lease and before it writes. When the paused holder continues, another holder may have the
// lease, so the resource must reject the late write. For this purpose, the resource stores the newest fencing
// token that it has seen, and rejects every older token. The stored token is called the mark.
//
// # The order of tokens
//
// Each grant of a lease and each change of its ID issues a newer [lease.Token], but a renewal does not. Every
// well-formed token has 20 digits, so a database can compare two tokens as text. Tokens of different leases
// cannot be compared, so a resource needs a separate mark for each lease.
//
// # The rules of a guard
//
//  1. After a guard has accepted a write with one token, it accepts no write with an older token.
//  2. A holder calls Advance before its first read. Otherwise the previous holder may write between the read
//     and the write of the new holder, so that the new holder overwrites this late write without having read
//     it. If every holder calls Advance first, all accepted sequences of reads and writes are serializable.
//  3. The mark is stored atomically with the data that it guards.
//  4. A token that equals the mark is accepted, because a holder sends the same token with all its writes.
//     Empty and malformed tokens are refused, and do not change the mark.
//  5. The mark is never replaced by an older token, even if a write fails or the process restarts.
//
// A guard does not protect reads, or effects outside the resource, such as an e-mail. Nor does a guard reject
// a forged token, or a write that the current holder sends twice.
//
// # Which guard to use
//
// A guard belongs to the resource. All writers of the resource must share one guard, which must be stored
// with the data. Guards in the memory of each writer do not protect the data.
//
// For data in memory, or data that only one process changes, use a [Guard]. A Guard runs one function at a
// time, and after it has run a function with one token, it never runs a function with an older token. The
// mark is lost when the process exits. If the data lasts longer, store the mark with the data, and pass the
// mark to [NewGuard] after a restart.
//
// For data in a database or a file, store a [Mark] beside the data. Call [Advance] in the transaction that
// writes the data.
//
// For data behind HTTP, wrap the server's handler with [Handler], which reads the token from a header of the
// request. The wrapped handler gets the token from [TokenFromContext]. In the client, use [Transport] to send
// the token in the header.
package fencing
