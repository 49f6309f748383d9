// Package natslease keeps leases in a key-value bucket of NATS JetStream.
//
//	nc, err := nats.Connect("localhost:4222", natslease.ConnectOptions()...)
//	js, err := jetstream.New(nc)
//	kv, err := js.CreateKeyValue(ctx, natslease.BucketConfig("leases", 3)) // once
//	store, err := natslease.New(ctx, js, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [lease.Lease], as every other store does. The Store supports every request
// of a [lease.Authority]. For example, a program can break a lease with a grace period, acquire an
// infinite lease, or take over a lease of the same owner. Every grant has a fencing token.
//
// Call [Store.Lease] to hold a lease. Call [Store.Authority] to inspect a lease, to break it, or to
// change it. For each lease, the Store remembers the last version that it has seen. [Store.Lease]
// and [Store.Authority] start each request from the remembered version, so they need fewer round
// trips to NATS. An authority from lease.NewAuthority(store) keeps leases just as safe as
// store.Authority(), but each of its renewals takes three round trips instead of one. Make one
// Store for each client and keep it. A new Store remembers no leases, so its first requests take
// more round trips. A new Store also starts to count the duration of each lease from the beginning.
//
// # Promises and their limits
//
// At most one lease ID is in force for a name at any time. Every token is newer than all earlier
// tokens for the same name. Leases stay exclusive and tokens keep rising after keys are deleted or
// purged, after the whole bucket is purged, after a server restarts, and after the leader changes.
// The promises of a lease require that NATS keeps every acknowledged write, and that the revision
// numbers of the bucket always rise. NATS loses writes, or its revision numbers fall, in the
// following cases:
//
//   - The operating system of a server crashes, or the server loses power. A server acknowledges a
//     write before the write is on the disk. By default, a server syncs its disk every two minutes,
//     even if the bucket has three replicas. Set sync_interval: always in the jetstream section of
//     every server. Without sync_interval: always, a crash of all machines can lose two minutes of
//     acknowledged writes. While one server is cut off, a crash of another machine can lose some
//     writes too.
//   - A bucket with one replica loses its disk.
//   - The bucket is deleted. The revisions and the tokens of a new bucket begin again at 1. After a
//     restore from a backup, the revisions and the tokens continue from the state of the backup.
//   - An operator changes the configuration so that NATS removes records by itself. New rejects a
//     bucket that has a TTL, that discards old messages, that is stored in memory, or that is a
//     mirror. But New checks the configuration only once.
//
// Deleting a key by hand ends the lease at once, as a break does. After the deletion, the tokens of
// the lease still rise. A Store accepts a value that was written by hand. Let R be the revision of
// such a value. If the epoch in the value is below R-1, the Store uses the epoch R-1 instead. The
// next token after such a value is therefore still newer than all earlier tokens. Do not write an
// epoch above R-1 by hand. If a key with such an epoch is deleted or purged, the Store makes the
// next tokens from the new revision of the key, and these tokens can be lower than earlier tokens
// of the lease.
//
// # Keys
//
// A lease is stored under one key. Letters, digits, '-', '/', '_' and most dots of a name appear
// unchanged in the key. Every other byte is written as '=' and two hex digits. Even the longest
// valid name fits into the default max_control_line of a server. The nats command prints the value:
//
//	$ nats kv get leases jobs/nightly --raw
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// The key =confirm is not a lease. Stores write to the key =confirm to confirm their reads. A Store
// never deletes a key. If a lease has no key yet, even a call that only inspects the lease creates
// the key. A Store does not use the TTL of keys or delete markers.
//
// # Permissions
//
// A user of NATS needs permission to publish to
//
//	$KV.leases.>
//	$JS.API.STREAM.INFO.KV_leases
//	$JS.API.STREAM.MSG.GET.KV_leases
//	$JS.API.CONSUMER.CREATE.KV_leases.>    to wait for a lease: without it waiters poll
//
// The user also needs permission to subscribe to _INBOX.>, or to the client's own inbox prefix. If
// the user has no permission for a request, NATS does not answer, and the request fails when its
// context ends. The error names the missing permission and is a [lease.PermanentError].
//
// # Reads
//
// Every kind of read in NATS can return old data. A holder that relied on old data might use its
// lease after the lease has ended. By default, a bucket has AllowDirect, so any replica can answer a
// read, even a replica that lags behind the leader. Without AllowDirect only the leader answers, but
// a leader that is cut off from the other servers continues to answer for up to 20 seconds. A Store
// therefore reads from the leader and then confirms the answer by a write to the key =confirm. The
// write succeeds only if the revision that was read is still the last revision of the lease's key.
// Only a leader that a majority of servers follows can acknowledge a write. With AllowDirect, the
// command nats kv get can print an old value. A Store still returns the current value.
//
// A write that depends on the revision of another key needs servers of version 2.12 or newer. New
// returns an error if the server is older.
//
// # Time
//
// NATS does not report its own time with a read, and the clocks of two clients can differ. Because
// there is no common clock, a key never stores the time at which a lease ends. A key stores how
// much of the lease's duration was left when the key was written, rounded up to milliseconds. When
// a Store sees a version of a key for the first time, the Store starts to count the remaining
// duration on its own monotonic clock. No clock needs to show the right time of day, but the rate
// of each clock must be right, with an error of at most [Options.MaxClockDrift]. The countdown in
// each Store has three consequences:
//
//   - If a contender was already waiting when the holder died, the contender takes over once the
//     duration is over. A contender that starts later first waits for a whole duration.
//   - Some processes call Acquire once and exit if the lease is taken. A process that calls Acquire
//     only once never gets the lease of a holder that died, because each new process starts to
//     count from zero. A job that a scheduler starts should call session.TryRun. A scheduled job
//     can also call session.AcquireWait with a context that lasts longer than the Duration of the
//     lease.
//   - The nats command can print a lease as leased long after the lease has expired, because no
//     client writes the key when a lease expires. [Store.List] reports such a lease as expired once
//     the Store has seen it for its whole duration.
//
// # Watches
//
// Each watch uses a NATS consumer, which lives in the memory of one server. If the server of the
// consumer or the connection to NATS fails, the watch is closed within 5 s. A watch sends a signal
// as soon as the server of its consumer has received the change. If the server of the consumer is
// cut off from the leader but not from its clients, the watch stays open and sends no signals, so a
// waiter does not notice a release. If a waiter receives no signal, it waits for the remaining time
// from its last read before it reads the lease again.
//
// # Load
//
// A Store has at most 64 writes under way, sends renewals first, and does not send a write whose
// context has ended. While many writes are under way, the Store measures how many the bucket takes. It
// refuses a new lease if the renewals of its leases already need half of them. The error says "no room",
// has no [lease.Code], and a later attempt can succeed.
//
// # Servers
//
// If a request gets no answer, or no leader, and the server has answered no other request since, the
// Store makes its client connect again, to another of its servers. The other users of the client see a
// reconnection. A client that must not reconnect keeps its connection.
//
// # Round trips
//
// A renewal or a release takes one round trip to NATS. An acquire takes one round trip if the Store
// has already seen the current version of the lease, and three if not. A refused request takes two
// round trips, because the Store reads the lease again and confirms the read. Inspecting a lease
// takes two round trips: one reads the lease, and the other confirms the read. Waiting for a lease
// takes no round trips, but needs one consumer for each name. Listing leases takes three round
// trips, and two more for each lease.
package natslease
