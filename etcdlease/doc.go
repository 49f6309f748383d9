// Package etcdlease keeps leases in etcd.
//
//	client, err := clientv3.New(etcdlease.ClientConfig("localhost:2379"))
//	store, err := etcdlease.New(client, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// The result is a [lease.Lease] like any other. [Store.Lease] returns a holder. [Store.Authority]
// is for everything else: breaking with grace, changing, infinite leases, taking over by owner.
// Both begin a request with what the Store saw last, so that a renewal is one exchange. With
// [lease.NewAuthority] it is two. Make one Store for a client and keep it, because a new Store has
// seen nothing.
//
// [ClientConfig] sets the keepalive and the back-off that leases need. With the defaults of
// clientv3, a client never recovers from a connection that died silently.
//
// # Keys
//
// A lease is one key, which is [Options.Prefix] followed by the name. Its value is what etcdctl
// shows:
//
//	$ etcdctl get --prefix lease/
//	lease/jobs/nightly
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// Every valid name can be a key. The leases of etcd itself are not used. Keys are never deleted,
// and even reading a lease creates its key. If somebody deletes a key by hand, the holder loses the
// lease, as by a break. Tokens do not fall: see Tokens.
//
// A user of etcd needs the permission readwrite on the prefix:
//
//	$ etcdctl role grant-permission worker readwrite lease/ --prefix
//
// # Time
//
// etcd has no clock that can be asked, and the clocks of clients differ. So a key has no end. It
// has the time that was left at the commit, rounded up to milliseconds. A process that sees a
// version of the key for the first time counts from then on, by its own monotonic clock. No clock
// has to show the right time. Their rates may differ by [Options.MaxClockDrift]. It follows that
//
//   - a contender that was waiting when the holder died takes over when the duration is over. One that
//     comes later first waits for a whole duration.
//   - a process that calls Acquire once, and ends if it is refused, never gets the lease of a holder that
//     died, because it has always just begun to count. A job that a scheduler starts should call
//     session.TryRun, or session.AcquireWait with a context that lasts longer than the lease.
//   - a lease that etcdctl shows as leased may have been over for a long time, because nothing is
//     written when it ends. [Store.List] shows it as expired, from the second list on.
//   - two processes may disagree about a lease that is just ending. But its swaps have one order, and
//     in that order no lease is taken while its holder still relies on it.
//
// # Tokens
//
// A token is newer than every token that was granted before under the name, for as long as the
// cluster keeps its revisions. That holds if the key is deleted, if it is restored from an old
// copy, and after restarts and changes of the leader. An epoch is never below the revision that
// created the key, and every grant has a revision of its own.
//
// There are two exceptions. "etcdctl snapshot restore" takes the cluster back in time, and the
// tokens with it, unless it is called with --bump-revision. And a value that somebody writes over
// an existing key is believed: delete the key instead.
//
// # Exchanges
//
// A renewal, a release and a refusal are one exchange. An acquire is one exchange if the Store
// knows the key as it is, and two if not. Waiting is a watch, and costs none.
package etcdlease
