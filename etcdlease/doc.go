// Package etcdlease keeps leases in etcd.
//
//	client, err := clientv3.New(etcdlease.ClientConfig("localhost:2379"))
//	store, err := etcdlease.New(client, nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there:
// breaking with grace, changing, infinite leases, taking over by owner and fencing tokens.
//
// [Store.Lease] is what to hold a lease with, and [Store.Authority] what to do anything else to
// one with: a request of theirs begins with what the Store saw last. [lease.NewAuthority] makes
// an authority of a Store too, as of any; it is as safe, and takes two exchanges to renew. Make
// one Store for a client and keep it, since a new one has seen nothing.
//
// [ClientConfig] sets the keepalive and the back-off that leases need. With the defaults of clientv3 a
// client never recovers from a connection that died silently.
//
// # Keys
//
// A lease is one key, [Options.Prefix] and the name as it is. Its value is what etcdctl shows:
//
//	$ etcdctl get --prefix lease/
//	lease/jobs/nightly
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1","duration":"15s","left":"15s","epoch":7}
//
// Every valid name fits: no name is longer than a key may be. etcd's own leases are not used,
// and no key is ever deleted; even looking at a lease creates its key. Whoever deletes one by
// hand takes the lease from its holder, as a break does, and nothing worse: see Tokens.
//
// A user of etcd needs the permission readwrite on the prefix:
//
//	$ etcdctl role grant-permission worker readwrite lease/ --prefix
//
// # Time
//
// etcd has no clock that could be asked, and the clocks of clients agree on nothing. What is
// kept is therefore never an end, but the time that was left at the commit, rounded up to
// milliseconds. Whoever sees a version of the key for the first time counts from there, on
// his own monotonic clock. Nobody's clock has to be right; their rates may differ by
// [Options.MaxClockDrift]. It means that
//
//   - a contender who was there when the holder died takes over when the duration is over, and
//     one who comes later waits for a whole duration first;
//   - a new process that tries once, with Acquire, and ends if it is refused, never gets the lease
//     of a holder that died: each such try is a first sight. A job that a scheduler starts waits,
//     with session.AcquireWait under a context that is longer than the Duration of the lease (by a
//     second, say), or is a process that stays;
//   - a lease that shows as leased in etcdctl may be over for long, since nobody has written since.
//     [Store.List] shows it as expired, from the second list on;
//   - two processes may differ about a lease that is ending, but its swaps have one order, and
//     in it no lease is taken before its holder's certainty is over.
//
// # Tokens
//
// A token is newer than every one granted before under the name, for as long as the cluster
// keeps its revisions: through the deletion of the key, its restoration from an old copy,
// restarts and changes of the leader. A key counts no epoch below the revision that created
// it, and every grant has a revision of its own. (etcdctl snapshot restore takes the cluster
// back in time, and the tokens with it, unless it is told to --bump-revision. A value that is
// written over a living key by hand is believed: delete the key instead.)
//
// # Exchanges
//
// A renewal and a release are one exchange, an acquire is one if the store has seen last how the
// lease is and two if not; a refusal is one. Waiting costs none: it is a watch.
package etcdlease
