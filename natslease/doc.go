// Package natslease keeps leases in a key-value bucket of NATS JetStream.
//
//	nc, err := nats.Connect("localhost:4222", natslease.ConnectOptions()...)
//	js, err := jetstream.New(nc)
//	kv, err := js.CreateKeyValue(ctx, natslease.BucketConfig("leases", 3)) // once
//	store, err := natslease.New(ctx, js, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also inspect, break or change leases, acquire infinite leases, or take
// over a lease of the same owner. Every grant has a fencing token.
//
// A Session, like the authority of [Store.Authority], starts each request from the last version of the lease
// that the Store has seen, so most renewals take a single round trip to NATS. An authority from
// lease.NewAuthority(store) is just as safe, but takes three round trips for each renewal. Make one Store for
// each client, and use it for the whole life of the client. A new Store remembers no leases, so its first
// requests take more round trips, and it counts the duration of each lease from the beginning.
//
// # Promises and their limits
//
// At any time, at most one holder has a lease. Every token of a lease is newer than all earlier tokens of the
// lease. Both promises hold even after a server restarts and after the leader changes, and tokens keep rising
// even after keys are deleted or purged and after the whole bucket is purged. Both promises require that NATS
// keeps every acknowledged write, and that the revision numbers of the bucket always rise. NATS loses writes,
// or its revision numbers decrease, in these cases:
//
//   - The operating system of a server crashes, or the server loses power. A server acknowledges a write
//     before the write is on the disk. By default, it syncs its disk every two minutes, even if the bucket
//     has three replicas. So a crash of all machines can lose two minutes of acknowledged writes. While one
//     server is cut off, even a crash of one other machine can lose some writes. To prevent this, set
//     sync_interval: always in the jetstream section of every server.
//   - A bucket with one replica loses its disk.
//   - The bucket is deleted. The revisions and the tokens of a new bucket start at 1 again. After a restore
//     from a backup, they continue from the state of the backup.
//   - An operator changes the configuration so that NATS removes records by itself. New rejects a bucket
//     that has a TTL, that discards old messages, that is stored in memory, or that is a mirror, but it
//     checks the configuration only once.
//
// If a person deletes the key of a lease, the lease ends at once, just as after a break with a period of 0,
// although its holder relies on it until its next renewal is refused. The next token of the lease is still
// newer than all earlier tokens. A Store also accepts a value that was written by hand. Suppose that such a
// value has the revision 500. If the epoch in the value is below 499, the Store uses the epoch 499 instead,
// so that the next token is newer than all earlier tokens. An epoch above 499 must not be written at revision
// 500. The Store would accept such an epoch, and grant tokens with even higher epochs. But if the key were
// then deleted or purged, the Store would make the next tokens from the new revision of the key, and these
// tokens could be older than earlier tokens of the lease.
//
// # Keys
//
// A lease has one key. Letters, digits, '-', '/', '_' and most dots of the name appear unchanged in the key.
// Every other byte is written as '=' and two hex digits. Even the longest valid name fits into the default
// max_control_line of a server. The nats command prints the value:
//
//	$ nats kv get leases jobs/nightly --raw
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// The key "=confirm" does not belong to a lease: Stores write to it to confirm their reads. A Store never
// deletes a key, and does not use the TTL of keys or delete markers. If a lease has no key yet, even a call
// that only inspects the lease creates the key.
//
// # Permissions
//
// A user of NATS needs permission to publish to these subjects:
//
//	$KV.leases.>
//	$JS.API.STREAM.INFO.KV_leases
//	$JS.API.STREAM.MSG.GET.KV_leases
//	$JS.API.CONSUMER.CREATE.KV_leases.>    to wait for a lease; without it, waiting processes poll
//
// The user also needs permission to subscribe to _INBOX.>. If the client has an inbox prefix of its own, for
// example app, the user needs permission to subscribe to app.> instead. Without a permission, NATS does not
// answer, and the request fails when its context ends. The error names the missing permission and is a
// [lease.PermanentError].
//
// # Reads
//
// Every kind of read in NATS can return old data. If a holder relied on old data, the holder might use its
// lease after the lease has ended. By default, a bucket has AllowDirect, so any replica can answer a read,
// even a replica that lags behind the leader. Without AllowDirect only the leader answers, but a leader that
// is cut off from the other servers continues to answer for up to 20 seconds. A Store therefore reads from
// the leader and then confirms the answer by a write to the key "=confirm". The write succeeds only if the
// revision that was read is still the last revision of the lease's key, and only a leader that a majority of
// servers follows can acknowledge a write. If the bucket has AllowDirect, the command "nats kv get" can print
// an old value, but a Store still returns the current value.
//
// Only servers of version 2.12 or newer support a write that depends on the revision of another key, so New
// rejects older servers.
//
// # Time
//
// NATS does not report its own time with a read, and the clocks of two clients can differ. So the value of a
// key contains the remaining time of the lease, as of the last write of the key, instead of the time at which
// the lease ends. When a Store first sees a version of a key, the Store starts to count down the remaining
// time on its own monotonic clock. No clock needs to show the right time of day, but the rate of each clock
// must be right, with an error of at most [Options.MaxClockDrift]. This has three consequences:
//
//   - A contender that was waiting when the holder crashed takes over as soon as the duration is over. A
//     contender that starts later first waits for a whole duration.
//   - A process that calls Acquire once, and exits if the lease is taken, never gets the lease of a crashed
//     holder, because each new process counts the duration from the beginning. A scheduled job should call
//     session.TryRun, or session.AcquireWait with a context that lasts longer than the Duration of the lease.
//   - The nats command can print a lease as leased long after it has expired, because nothing is written when
//     a lease expires. Store.List reports such a lease as expired once the Store has seen it for its whole
//     duration.
//
// # Watches
//
// Each watch uses a NATS consumer, which exists in the memory of one server. If that server or the connection
// to NATS fails, the watch is closed within 5 s. A watch sends a signal as soon as its server has received
// the change. If the server is cut off from the leader but not from its clients, the watch stays open but
// sends no signals, so a waiting process does not notice a release at once. The process notices it when it
// reads the lease again. For example, if the lease had 10 s left when the process last read it, the process
// reads the lease again after 10 s.
//
// # Load
//
// A Store sends at most 32 requests at a time, renewals and releases first, and does not send a request that
// would be answered too late. While renewals queue up, the Store measures how many renewals a second the
// bucket can do. If the leases that the Store holds already need four fifths of that rate, the Store refuses
// to acquire another lease. The error says "no room" and wraps [lease.ErrUnsent], and a later attempt can
// succeed. If the server becomes much slower after that, for longer than the leases last, held leases can
// still be lost.
//
// # Servers
//
// If a request gets no answer, or the answer that there is no leader, and the server has answered no other
// request since, the Store makes its client reconnect to another of its servers. The other users of the
// client notice the reconnection too. The Store does not do this if the options of the client forbid
// reconnecting.
//
// # Round trips
//
// A renewal or a release takes one round trip to NATS. An acquire takes one round trip if the Store has
// already seen the current version of the lease, and three if not. Inspecting a lease takes two round trips:
// one to read the lease, and another to confirm the read. A refused request also takes two round trips.
// Waiting for a lease takes no round trips, but needs one consumer for each lease. Listing leases takes three
// round trips, and two more for each lease.
package natslease
