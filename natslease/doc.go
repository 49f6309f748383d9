// Package natslease keeps leases in a key-value bucket of NATS JetStream.
//
//	nc, err := nats.Connect("localhost:4222", natslease.ConnectOptions()...)
//	js, err := jetstream.New(nc)
//	kv, err := js.CreateKeyValue(ctx, natslease.BucketConfig("leases", 3)) // once
//	store, err := natslease.New(ctx, js, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [lease.Lease], as every other store does. The Store supports every request of a
// [lease.Authority], such as a break with a grace period, an infinite lease, or a takeover of a lease of
// the same owner. Every grant has a fencing token.
//
// Call [Store.Lease] to hold a lease, and [Store.Authority] to inspect, break or change one. A Session and this
// authority start each request from the last version of the lease that the Store has seen, so they need fewer round
// trips to NATS. An authority from lease.NewAuthority(store) is just as safe, but each of its renewals takes three
// round trips instead of one. Make one Store for each client, and use it for the whole life of the client. A new
// Store remembers no leases, so its first requests take more round trips, and it starts to count the duration of each
// lease from the beginning.
//
// # Promises and their limits
//
// At any time, at most one holder has a lease. Every token is newer than all earlier tokens for the same
// name. Both promises hold after keys are deleted or purged, after the whole bucket is purged, after a
// server restarts, and after the leader changes. They require that NATS keeps every acknowledged write, and
// that the revision numbers of the bucket always rise. NATS loses writes, or its revision numbers fall, in
// these cases:
//
//   - The operating system of a server crashes, or the server loses power. A server acknowledges a write
//     before it is on the disk. By default, it syncs its disk every two minutes, even if the bucket has
//     three replicas. Set sync_interval: always in the jetstream section of every server. Without this
//     setting, a crash of all machines can lose two minutes of acknowledged writes. While one server is
//     cut off, even a crash of one other machine can lose some writes.
//   - A bucket with one replica loses its disk.
//   - The bucket is deleted. The revisions and the tokens of a new bucket begin again at 1. After a
//     restore from a backup, they continue from the state of the backup.
//   - An operator changes the configuration so that NATS removes records by itself. New rejects a bucket
//     that has a TTL, that discards old messages, that is stored in memory, or that is a mirror, but it
//     checks the configuration only once.
//
// Deleting a key by hand ends the lease at once, as a break does. Its tokens still rise. A Store accepts a
// value that was written by hand. If the epoch in it is below R-1, where R is the revision of the value,
// the Store uses R-1 instead, so the next token is still newer than all earlier ones. Do not write an epoch
// above R-1 by hand. If a key with such an epoch is deleted or purged, the next tokens are made from the
// new revision of the key, and can be lower than earlier tokens of the lease.
//
// # Keys
//
// A lease has one key. Letters, digits, '-', '/', '_' and most dots of a name appear unchanged in it. Every
// other byte is written as '=' and two hex digits. Even the longest valid name fits into the default
// max_control_line of a server. The nats command prints the value:
//
//	$ nats kv get leases jobs/nightly --raw
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// The key =confirm is not a lease. Stores write to it to confirm their reads. A Store never deletes a key.
// If a lease has no key yet, even a call that only inspects the lease creates the key. A Store uses no TTL
// of keys and no delete markers.
//
// # Permissions
//
// A user of NATS needs permission to publish to
//
//	$KV.leases.>
//	$JS.API.STREAM.INFO.KV_leases
//	$JS.API.STREAM.MSG.GET.KV_leases
//	$JS.API.CONSUMER.CREATE.KV_leases.>    to wait for a lease; without it, waiting processes poll
//
// and to subscribe to _INBOX.>, or to the client's own inbox prefix. Without a permission, NATS does not
// answer, and the request fails when its context ends. The error names the missing permission and is a
// [lease.PermanentError].
//
// # Reads
//
// Every kind of read in NATS can return old data. A holder that relied on old data might use its lease
// after it has ended. By default, a bucket has AllowDirect, so any replica can answer a read, even one that
// lags behind the leader. Without AllowDirect only the leader answers, but a leader that is cut off from
// the other servers continues to answer for up to 20 seconds. A Store therefore reads from the leader and
// then confirms the answer by a write to the key =confirm. The write succeeds only if the revision that was
// read is still the last one of the lease's key, and only a leader that a majority of servers follows can
// acknowledge a write. With AllowDirect, the command nats kv get can print an old value. A Store still
// returns the current value.
//
// Such a write, which depends on the revision of another key, needs servers of version 2.12 or newer. New
// refuses older ones.
//
// # Time
//
// NATS does not report its own time with a read, and the clocks of two clients can differ. A key therefore
// never stores the time at which a lease ends, but how much of its duration was left when the key was
// written, rounded up to milliseconds. When a Store sees a version of a key for the first time, it starts
// to count this remaining duration on its own monotonic clock. No clock needs to show the right time of
// day, but the rate of each clock must be right, with an error of at most [Options.MaxClockDrift]. This has
// three consequences:
//
//   - A contender that was waiting when the holder died takes over as soon as the duration is over. A
//     contender that starts later first waits for a whole duration.
//   - A process that calls Acquire once, and exits if the lease is taken, never gets the lease of a holder
//     that died, because each new process starts to count from zero. A scheduled job should call
//     session.TryRun, or session.AcquireWait with a context that lasts longer than the Duration of the
//     lease.
//   - The nats command can print a lease as leased long after it has expired, because nothing is written
//     then. Store.List reports such a lease as expired once the Store has seen it for its whole
//     duration.
//
// # Watches
//
// Each watch uses a NATS consumer, which lives in the memory of one server. If that server or the
// connection to NATS fails, the watch is closed within 5 s. A watch sends a signal as soon as its server
// has received the change. If the server is cut off from the leader but not from its clients, the watch
// stays open and sends no signals, so a waiting process does not notice a release. It then reads the lease
// again when the remaining time of its last read has passed.
//
// # Load
//
// A Store has at most 32 requests under way, sends renewals and releases first, and does not send a request
// that would be answered too late. While renewals queue up, the Store measures how many renewals a second the bucket
// can do. The Store refuses to acquire another lease if the leases that it holds already need four fifths of that
// rate. The error says "no room" and wraps [lease.ErrUnsent], and a later attempt can succeed. Leases that are held
// can still be lost if the server then becomes much slower for longer than they last.
//
// # Servers
//
// If a request gets no answer, or no leader, and the server has answered no other request since, the Store
// makes its client connect again, to another of its servers. The other users of the client see a
// reconnection. The Store does not do this if the options of the client forbid reconnecting.
//
// # Round trips
//
// A renewal or a release takes one round trip to NATS. An acquire takes one round trip if the Store has already
// seen the current version of the lease, and three if not. Inspecting a lease takes two: one reads the lease,
// and the other confirms the read. A refused request takes the same two. Waiting for a lease takes none,
// but needs one consumer for each name. Listing leases takes three, and two more for each lease.
package natslease
