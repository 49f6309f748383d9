// Package kubelease keeps leases in the Lease objects of Kubernetes, coordination.k8s.io/v1.
//
//	config, err := rest.InClusterConfig()
//	client, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config))
//	store, err := kubelease.New(client, "default", nil)
//	l, err := store.Lease("indexer-leader", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there: breaking
// with grace, changing, infinite leases, taking over by owner and fencing tokens.
//
// [Store.Lease] is what to hold a lease with, and [Store.Authority] what to do anything else to one
// with: a request of theirs begins with what the Store saw last. [lease.NewAuthority] makes an
// authority of a Store too, as of any; it is as safe, and takes two exchanges to renew. Make one
// Store for a client and keep it, since a new one has seen nothing.
//
// [ClientConfig] sets what leases need of a client. With the defaults of client-go a client delays its
// own requests once there are more than 5 a second, and needs 45 s to notice that its connection has
// died without a sign.
//
// # Objects
//
// A lease is one object. Its record stands in one annotation, and the spec says the same to everybody
// else:
//
//	$ kubectl get lease indexer-leader -o yaml
//	metadata:
//	  annotations:
//	    fencedlease.github.io/record: '{"record":{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5",
//	      "owner":"worker-1","duration":"15s","left":"15s","epoch":812},"holder":"worker-1_1f812371",
//	      "transitions":3,"uid":"9ecaee6d-527f-4be6-a1c0-27da6fee5fb6"}'
//	spec:
//	  holderIdentity: worker-1_1f812371
//	  leaseDurationSeconds: 15
//	  renewTime: "2026-11-22T07:05:14.000000Z"
//
// The fields of the spec are
//
//   - holderIdentity: the owner and a part of the lease ID; empty if the lease is not locked;
//   - leaseDurationSeconds: what was left when the object was written, in whole seconds, rounded up;
//     2^31-1 for an infinite lease;
//   - renewTime: the time of the write, but at least a second after the renewTime before. It runs
//     ahead of the clock if the lease is written more often;
//   - acquireTime, leaseTransitions: the time of the last grant, and the number of grants.
//
// Nothing in this package decides by the times. No object is ever deleted; even looking at a lease
// creates its object. Labels, other annotations and owners are kept.
//
// A name that Kubernetes allows is the name of the object: lower-case letters, digits, "-" and ".",
// 253 bytes at most. Any other name is escaped: "jobs/nightly" is kept in "x--jobs-2fnightly". A name
// that is too long is refused.
//
// A program needs the verbs get, create, update, watch and list on leases in the namespace: rbac.yaml
// in the folder of this package is a Role for it. An object with spec.strategy or
// spec.preferredHolder is refused, because the API server elects its holder.
//
// # Time
//
// The API server has no clock that could be asked, and the clocks of clients agree on nothing. What is
// kept is therefore never an end, but the time that was left at the write, rounded up to milliseconds.
// A Store that sees a version of the object for the first time counts from there, on its own
// monotonic clock. No clock has to be right; their rates may differ by [Options.MaxClockDrift]. It
// means that
//
//   - a contender that was there when the holder died takes over when the duration is over, and one
//     that comes later waits for a whole duration first;
//   - a new process that tries once, with Acquire, and ends if it is refused, never gets the lease of
//     a holder that died: each such try is a first sight. A job that a scheduler starts uses
//     session.TryRun, or waits with session.AcquireWait;
//   - a lease that shows a holder in kubectl may be over for long, since nobody has written since.
//     [Store.List] shows it as expired, from the second list on;
//   - every write of the object by another program, such as a new label, counts as a new version, and
//     so delays contenders by a duration at most.
//
// # Tokens
//
// A token is newer than every one granted before under the name: through the deletion of the object,
// its restoration from an old copy, restarts of the API server, objects that an elector has made, and
// terms of other programs. A name begins with an object without a record, whose resourceVersion is the
// floor of its epochs, and a grant is an update of just that version. Resource versions of one
// resource are numbers that rise: Kubernetes promises that since 1.35. Older API servers over etcd do
// the same without promising it, and a resourceVersion that is not a number is an error.
//
// What voids the promise:
//
//   - A restore of the cluster's etcd from a backup takes resource versions back in time, and the tokens
//     with them.
//   - An annotation that is edited by hand is believed. Delete the object, or the annotation, instead.
//   - Deleting the object by hand frees the lease at once, before its holder stops believing.
//
// # Other programs
//
// Electors of client-go, and so managers of controller-runtime, can contend for the same object. A
// program can be moved from them to this package by a rolling update. Each side sees the other's
// release at once, and the other's death after the duration.
//
// The lease of another program is shown as leased for its leaseDurationSeconds from first sight, or
// forever if it has none, under an ID that no request may have and an owner that begins with
// [ForeignOwner]. It has no fencing token, so nothing protects data from its late writes. A request
// that would end or change its lease is refused with [lease.ErrForeign]; [Options.Limits] do not bound
// it. When it has run out or was released, the next grant has a newer token than the last one here.
//
// At most one of all holders leads, but for weaknesses of client-go's elector that its users have
// without this package, too:
//
//   - An elector with ReleaseOnCancel that is told to stop reads the object afresh, but asks its memory
//     whether it leads. If it was replaced meanwhile, it empties the lease of its successor, and a third
//     elector can take that at once. Stores of this package keep such a lease until it runs out, and
//     its holder's next renewal restores it.
//   - An elector counts from when an answer arrives, and not from when it sent the request. If the
//     answer is late, it leads after its lease has ended.
//   - With ReleaseOnCancel it releases the lease before its work has stopped.
//   - Before v0.27 it replaces a holder after its own LeaseDuration, whatever the holder's is. The
//     Duration here must not be longer than that, and must not be infinite.
//
// # Exchanges
//
// A renewal and a release are one exchange. An acquire is one if the store has seen last how the lease
// is, two if not, and three if the name is new. A refusal is one. Waiting is a watch: a contender is
// not woken for renewals, and looks again when the last one that it has seen is over.
package kubelease
