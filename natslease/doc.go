// Package natslease keeps leases in a key-value bucket of NATS JetStream.
//
//	nc, err := nats.Connect("localhost:4222", natslease.ConnectOptions()...)
//	js, err := jetstream.New(nc)
//	kv, err := js.CreateKeyValue(ctx, natslease.BucketConfig("leases", 3)) // once
//	store, err := natslease.New(ctx, js, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// The result is a [lease.Lease] like that of any other store. The Store supports every request of a
// [lease.Authority], including breaks with a grace period, infinite leases, and taking over by
// owner. Every grant has a fencing token.
//
// Call [Store.Lease] to hold a lease. Call [Store.Authority] to inspect a lease, to break it, or to
// change it. With both methods, a request starts from the state that the Store saw last, which
// saves exchanges with NATS. An authority that [lease.NewAuthority] makes of a Store is just as
// safe, but each of its renewals takes three exchanges. Make one Store for each client and keep it,
// because a new Store has not seen any lease yet.
//
// # Promises and their limits
//
// At most one lease ID is in force for a name at any time. Every token is newer than all tokens
// that were granted before for that name. Both promises still hold after keys are deleted or
// purged, after the whole bucket is purged, after a server restarts, and after the leader changes.
// Both promises require that NATS keeps every acknowledged write, and that revisions always rise.
// NATS does not meet these conditions in the following cases:
//
//   - The operating system of a server crashes, or the server loses power. A server acknowledges a
//     write before the write is on the disk. By default it syncs every two minutes, even if the
//     bucket has three replicas. Set sync_interval: always in the jetstream section of every
//     server. Without that setting, a crash of all machines can lose two minutes of acknowledged
//     writes. A crash of one machine can lose some writes too, if another server is out of touch at
//     that time.
//   - A bucket with one replica loses its disk.
//   - The bucket is deleted. The revisions of a new bucket, and so its tokens, begin again at 1.
//     After a restore from a backup they begin again at the state of the backup.
//   - Somebody changes the configuration so that NATS removes records by itself. New rejects a
//     bucket that has a TTL, that discards old messages, that is stored in memory, or that is a
//     mirror. But New checks the configuration only once.
//
// Deleting a key by hand ends the lease of its holder at once, as a break does, and does no other
// harm. A Store accepts a value that was written by hand. The epoch of a value that was written by
// hand is at least the revision of the value minus one.
//
// # Keys
//
// A lease is stored under one key. Letters, digits, '-', '/', '_' and most dots of a name stay as
// they are in the key. Every other byte is written as '=' and two hex digits. Every valid name fits
// a server with the default max_control_line. The nats command prints the value:
//
//	$ nats kv get leases jobs/nightly --raw
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// The key =confirm is not a lease. Stores write to that key to confirm their reads. A Store never
// deletes a key. Even a call that only inspects a lease creates the key of the lease. A Store does
// not use the TTL of keys or delete markers.
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
// The user also needs permission to subscribe to _INBOX.>, or to the client's own inbox prefix.
// NATS does not answer a request that lacks permission, so the request fails when its context ends.
// The error of such a request names the missing permission and is a [lease.PermanentError].
//
// # Reads
//
// A stale read could make a holder rely on its lease for too long, and every kind of read in NATS
// can be stale. AllowDirect is the default of buckets. With AllowDirect any replica answers a read,
// and a replica may lag behind. Without AllowDirect the leader answers, but a leader that was cut
// off still answers for up to 20 seconds. A Store therefore reads from the leader and then confirms
// the answer by a write to the key =confirm. The write succeeds only if the revision that was read
// is still the last revision of the lease's key. Only a leader that a majority of servers follows
// can acknowledge a write. With AllowDirect, nats kv get may print an old value, but a Store is not
// affected.
//
// Such a conditional write needs servers of version 2.12 or newer. New returns an error if the
// server is older.
//
// # Time
//
// NATS cannot report its time together with a read, and the clocks of two clients may differ. So a
// key never stores the time at which a lease ends. Instead, the key stores the duration that was
// left at the commit, rounded up to milliseconds. When a Store sees a version of a key for the
// first time, the Store starts to count the remaining duration on its own monotonic clock. So no
// clock has to show the right time of day. The rates of the clocks may differ by
// [Options.MaxClockDrift]. There are three consequences:
//
//   - If a contender was already waiting when the holder died, it takes over once the duration is
//     over. If it starts later, it first waits for a whole duration.
//   - Some processes call Acquire once and exit if the lease is taken. Such a process never gets
//     the lease of a holder that died, because each new process starts to count from zero. A job
//     that a scheduler starts should call session.TryRun. It can also call session.AcquireWait with
//     a context that lasts longer than the Duration of the lease.
//   - The nats command may print a lease as leased long after the lease has expired, because nobody
//     writes the key at that time. [Store.List] reports such a lease as expired once the Store has
//     seen it for its whole duration.
//
// # Watches
//
// Each watch uses a NATS consumer, which lives in the memory of one server. If that server or the
// connection fails, the watch is lost within 5 s. A signal is sent as soon as that server has the
// change. A server may be cut off from the leader but still be connected to its clients. A server
// that is cut off from the leader sends no signal, so a waiter notices a release only when the
// lease would have expired.
//
// # Exchanges
//
// A renewal takes one exchange with NATS, and so does a release. An acquire takes one exchange if
// the Store has already seen the current state of the lease, and three otherwise. A refusal takes
// two exchanges, because the read has to be confirmed. Inspecting a lease takes two for the same
// reason. Waiting needs no exchanges, but one consumer for each name. A list takes three exchanges,
// and two more for each lease.
package natslease
