// Package natslease keeps leases in a key-value bucket of NATS JetStream.
//
//	nc, err := nats.Connect("localhost:4222", natslease.ConnectOptions()...)
//	js, err := jetstream.New(nc)
//	kv, err := js.CreateKeyValue(ctx, natslease.BucketConfig("leases", 3)) // once
//	store, err := natslease.New(ctx, js, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there: breaking
// with grace, changing, infinite leases, taking over by owner and fencing tokens.
//
// [Store.Lease] is what to hold a lease with, and [Store.Authority] what to do anything else to one
// with: a request of theirs begins with what the Store saw last. [lease.NewAuthority] makes an
// authority of a Store too, as of any. It is as safe, and needs three exchanges to renew. Make one
// Store for a client and keep it, since a new one has seen nothing.
//
// # Promises, and what voids them
//
// At the authority, at most one lease ID is in force, and every token is newer than all that were
// granted before under the name: through deletes and purges of keys, purges of the whole bucket,
// restarts and changes of the leader. That holds as long as NATS keeps what it acknowledged, and
// counts its revisions on. It does not:
//
//   - after a loss of power or a crash of the operating system. A server acknowledges a write before
//     it is on the disk, and syncs every two minutes by default, also where a bucket has three
//     replicas. Set sync_interval: always in the jetstream section of every server. Without it, a
//     crash of all the machines can lose two minutes of acknowledged writes. A crash of one of them
//     can lose some too, if another server is out of touch at that time.
//   - if a bucket with one replica loses its disk.
//   - after the bucket was deleted. Its revisions, and with them the tokens, begin again at 1. The
//     same is true of a bucket that is restored from a backup: it goes back to that.
//   - if the bucket is changed so that NATS removes records by itself. New refuses a bucket with a
//     TTL, one that discards old messages, one in memory, and mirrors, but it looks only once.
//
// Deleting a key by hand takes the lease from its holder, as a break does, and nothing worse. A
// value that is written by hand is believed, with an epoch that is at least its revision less one.
//
// # Keys
//
// A lease is one key. Letters, digits, '-', '/', '_' and most dots of a name stand for themselves,
// and every other byte is '=' and two hex digits. Every valid name fits a server with the default
// max_control_line. The value is what nats shows:
//
//	$ nats kv get leases jobs/nightly --raw
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// The key =confirm is no lease: see Reads. No key is ever deleted. Even looking at a lease creates
// its key. Time to live of keys, and markers of deletes, are not used.
//
// # Permissions
//
// A user of NATS needs the permissions to publish to
//
//	$KV.leases.>
//	$JS.API.STREAM.INFO.KV_leases
//	$JS.API.STREAM.MSG.GET.KV_leases
//	$JS.API.CONSUMER.CREATE.KV_leases.>    to wait for a lease: without it waiters poll
//
// and to subscribe to _INBOX.>, or to the prefix of its own inboxes. NATS does not answer a request
// without permission, so it fails when its context ends. The error then names the permission, and is
// a [lease.PermanentError].
//
// # Reads
//
// A read that may be stale would make a holder believe for too long, and NATS has no other reads.
// With AllowDirect, the default of buckets, any replica answers a read, and may be behind. Without
// it the leader does, but a leader that was cut off answers for up to 20 seconds more. So a Store
// asks the leader, never a replica, and then confirms the answer: it writes to the key =confirm, on
// condition that the revision that it read is still the last one of the lease's key. That write is
// acknowledged only by a leader that a majority follows. AllowDirect does no harm to a Store, but
// what nats kv get shows may be old.
//
// The condition needs a server of version 2.12 or newer. On an older one New returns an error.
//
// # Time
//
// NATS has no clock that could be asked at a read, and the clocks of clients agree on nothing. What
// is kept is therefore never an end, but the time that was left at the commit, rounded up to
// milliseconds. A Store that sees a version of the key for the first time counts from there, on its
// own monotonic clock. Nobody's clock has to be right. Their rates may differ by
// [Options.MaxClockDrift]. It means that
//
//   - a contender that was there when the holder died takes over when the duration is over, and one
//     that comes later waits for a whole duration first;
//   - a new process that tries once, with Acquire, and ends if it is refused, never gets the lease of
//     a holder that died: each such try is a first sight. A job that a scheduler starts calls
//     session.TryRun, or waits with session.AcquireWait under a context that is longer than the
//     Duration of the lease;
//   - a lease that shows as leased in nats may be over for long, since nobody has written since.
//     [Store.List] shows it as expired, from the second list on.
//
// # Watches
//
// A watch is a consumer in the memory of one server. It is lost when that server or the connection
// is, 5 s later at the latest. A signal comes as soon as that server has the change. A server that is
// cut off from the leader, but not from its clients, sends none: then a waiter notices a release when
// the lease would have expired.
//
// # Exchanges
//
// A renewal and a release are one exchange. An acquire is one if the Store has seen last how the
// lease is, and three if not. A refusal, and a look at a lease, are two: the read and its
// confirmation. Waiting costs none, besides a consumer for each name that is waited for. A list is
// three exchanges, and two for each lease.
package natslease
