// Package etcdlease keeps leases in etcd.
//
//	client, err := clientv3.New(etcdlease.ClientConfig("localhost:2379"))
//	store, err := etcdlease.New(client, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also break leases with a grace period, acquire infinite leases, or
// take over a lease of the same owner. Each request starts from the last record that the Store has seen, so a
// renewal takes one exchange with etcd. With an authority from [lease.NewAuthority], a renewal takes two
// exchanges. Use one Store for the whole life of a client, because a new Store must first read each lease
// again.
//
// [ClientConfig] sets the keepalive and the back-off that a client needs to hold leases. With the defaults
// of clientv3, a client never recovers from a connection that died silently.
//
// # Keys
//
// A lease is one key, which is [Options.Prefix] followed by the name. etcdctl shows its value:
//
//	$ etcdctl get --prefix lease/
//	lease/jobs/nightly
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// Every valid name of a lease can be a key. Package etcdlease does not use the leases of etcd itself, and
// never deletes a key. Even a read creates the key of a lease if the key does not exist. If a person deletes
// a key, the lease is free at once, although the holder can still rely on the lease until its next renewal is
// refused. To give the holder time to stop, break the lease instead: see [lease.Break].
//
// A user of etcd needs the permission readwrite on the prefix:
//
//	$ etcdctl role grant-permission worker readwrite lease/ --prefix
//
// # Time
//
// etcd has no clock that clients can read, and the clocks of clients differ. So the value of a key contains
// the remaining time of the lease, as of the last write of the key, instead of the time at which the lease
// ends. When a process first reads a version of a key, the process starts to count down the remaining time on
// its own monotonic clock. The clocks of the processes need not show the right time, but they must run at
// nearly the same rate: see [Options.MaxClockDrift]. This has several consequences:
//
//   - A contender that was waiting when the holder crashed takes over as soon as the duration is over. A
//     contender that starts later first waits for a whole duration.
//   - A process that calls Acquire once and then exits never gets the lease of a crashed holder, because each
//     new process counts the duration from the beginning. A scheduled job should call session.TryRun, or
//     session.AcquireWait with a context that lasts longer than the lease.
//   - etcdctl can show a lease as leased long after it has expired, because nothing is written when a lease
//     expires. Store.List can report such a lease as expired, but not in the first list of a Store.
//   - Two processes can disagree about whether a lease has just ended. However, no process can acquire the
//     lease while its holder still relies on it, and all writes of a key happen one after the other.
//
// # Tokens
//
// Every new token of a lease is newer than all earlier tokens of the lease, as long as the revision of the
// cluster never decreases. Tokens keep rising even if etcd restarts or changes its leader, or if a key is
// deleted and then created again with an old value. The first epoch of a key comes from the revision at which
// the key was created, and its later epochs stay below the revision of the cluster. A key that is deleted and
// created again therefore starts with a greater epoch.
//
// Tokens can decrease in three cases. The first is a restore with "etcdutl snapshot restore", which gives the
// keys old values and old epochs, so that the same tokens can be granted again. To prevent this, restore with
// --bump-revision, so that the revision is above every revision of the old cluster, and delete the keys of
// all leases before any client uses a lease. In the second case, a person overwrites the value of a key: the
// Store accepts the epoch in the new value, even if the epoch in the old value was higher. In the third case,
// the Store has an [Options.Floor], and a person deletes a key and creates it again with an old value. To
// free a lease, break it or delete its key, but never write the key by hand.
//
// # Exchanges
//
// An exchange is one request to etcd and its answer. A renewal, a release or a refused request takes one
// exchange. An acquire takes one exchange if the Store has already read the current version of the key.
// Otherwise the Store must first read the key, so that the acquire takes two exchanges. A process that waits
// for a lease uses a watch, and needs no exchanges.
package etcdlease
