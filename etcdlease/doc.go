// Package etcdlease keeps leases in etcd.
//
//	client, err := clientv3.New(etcdlease.ClientConfig("localhost:2379"))
//	store, err := etcdlease.New(client, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] returns an authority
// for all other requests, such as breaking a lease with a grace period, acquiring an infinite
// lease, or taking over by owner. Each request starts from the record that the Store observed last,
// so a renewal is one exchange with etcd. With [lease.NewAuthority], a renewal is two exchanges.
// Use one Store for the whole life of a client, because a new Store must first observe each lease
// again.
//
// [ClientConfig] sets the keepalive and the back-off that leases need. With the defaults of
// clientv3, a client never recovers from a connection that died silently.
//
// # Keys
//
// A lease is one key, which is [Options.Prefix] followed by the name. etcdctl shows its value:
//
//	$ etcdctl get --prefix lease/
//	lease/jobs/nightly
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// Every valid name can be a key. This package does not use the leases of etcd itself. It never
// deletes a key. Even a read creates the key of a lease if the key does not exist. If a key is
// deleted by hand, its holder loses the lease. Tokens do not fall after a deletion: see Tokens.
//
// A user of etcd needs the permission readwrite on the prefix:
//
//	$ etcdctl role grant-permission worker readwrite lease/ --prefix
//
// # Time
//
// etcd has no clock that clients can read, and the clocks of clients differ. So a key does not
// store when its lease ends. A key stores how much time its lease had left when the key was
// written, rounded up to milliseconds. When a process first observes a version of a key, it starts
// to count down the remaining time with its own monotonic clock. The clocks of the processes need
// not show the right time, but they must run at nearly the same rate: see [Options.MaxClockDrift].
// This has several consequences:
//
//   - If a contender is waiting when a holder crashes, it takes over as soon as the duration is
//     over. A contender that comes later first waits for a whole duration.
//   - A process that calls Acquire once and then ends never gets the lease of a crashed holder,
//     because it has only just begun to count. A job that a scheduler starts should call
//     session.TryRun. It can also call session.AcquireWait with a context that lasts longer than
//     the lease.
//   - etcdctl may show a lease as leased long after the lease has ended, because nothing is
//     written when a lease ends. [Store.List] can report such a lease as expired, but not in the
//     first list of a Store.
//   - Two processes may disagree about a lease that is just ending. But swaps happen one after
//     the other, and none of them takes a lease while its holder still relies on the lease.
//
// # Tokens
//
// A token is newer than every token that was granted before under the same name, as long as the
// cluster keeps its revisions. Tokens keep rising even if a key is deleted or restored from an old
// copy. Tokens also keep rising if etcd restarts or changes its leader. Tokens rise because the
// epoch of a grant is never below the revision at which its key was created.
//
// There are two exceptions. The first exception is "etcdctl snapshot restore", which takes the
// cluster and its tokens back in time. To avoid that, call it with --bump-revision. The second
// exception is a value that was written by hand over an existing key. The Store accepts the epoch
// in a value that was written by hand, even if this epoch is lower than the epoch of the replaced
// value. To free a lease, delete its key. Do not overwrite the key.
//
// # Exchanges
//
// An exchange is one request to etcd and its answer. A renewal, a release or a refusal is one
// exchange. An acquire is one exchange if the Store has already observed the current version of the
// key, and two exchanges otherwise. A waiter uses a watch and needs no exchanges.
package etcdlease
