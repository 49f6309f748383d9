// Package etcdlease keeps leases in etcd.
//
//	client, err := clientv3.New(etcdlease.ClientConfig("localhost:2379"))
//	store, err := etcdlease.New(client, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] is for everything
// else, such as breaking a lease with a grace period, infinite leases, and taking over by owner.
// Both start a request from the record that the Store observed last, so a renewal is one exchange.
// With [lease.NewAuthority], a renewal is two exchanges. Make one Store for each client and keep
// it, because a new Store has observed nothing yet.
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
// store when its lease ends. Instead, a key stores how much time its lease had left when the key
// was written, rounded up to milliseconds. A process counts this time by its own monotonic clock,
// from its first observation of the written version. The clocks need not show the right time, but
// they must run at nearly the same rate: see [Options.MaxClockDrift]. This has several
// consequences:
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
// A token is newer than every token that was granted before under the same name, for as long as the
// cluster keeps its revisions. Tokens still rise if a key is deleted or restored from an old copy.
// Tokens also rise after restarts of etcd and changes of its leader. The epoch of a grant is never
// below the revision that created the key, and no two grants have the same revision.
//
// There are two exceptions. First, "etcdctl snapshot restore" takes the cluster and its tokens back
// in time. To avoid that, call it with --bump-revision. Second, if a value is written by hand over
// an existing key, the Store accepts the epoch in that value, even a lower one. To free a lease,
// delete its key instead.
//
// # Exchanges
//
// An exchange is one request to etcd and its answer. A renewal, a release or a refusal is one
// exchange. An acquire is one exchange if the Store has observed the current version of the key,
// and otherwise two. A waiter uses a watch and needs no exchanges.
package etcdlease
