// Package kubelease keeps leases in the Lease objects of Kubernetes, coordination.k8s.io/v1.
//
//	config, err := rest.InClusterConfig()
//	client, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config))
//	store, err := kubelease.New(client, "default", nil)
//	l, err := store.Lease("indexer-leader", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also inspect, break or change leases, acquire infinite leases, or take
// over a lease of the same owner. Every grant has a fencing token.
//
// Use one Store for the whole life of a client. A new Store has not seen any lease yet, so its first requests
// take more exchanges with the API server, and it counts the duration of each lease from the beginning.
//
// # Objects
//
// A lease is one object. An annotation has the record of the lease, and the spec has the same data for other
// programs:
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
// The fields of the spec are:
//
//   - holderIdentity: the owner and a part of the lease ID. It is empty if the lease is not locked.
//   - leaseDurationSeconds: the time that was left when the object was written, rounded up to whole seconds.
//     It is at least 1, and 2^31-1 for an infinite lease.
//   - renewTime: the time of the write, but at least one second after the previous renewTime. It is ahead of
//     the clock if the lease is written more than once a second.
//   - acquireTime: the time of the last grant.
//   - leaseTransitions: the number of grants.
//
// This package writes renewTime and acquireTime, but does not use them to decide who holds the lease. This
// package never deletes an object. If the object of a lease does not exist, even a call that only inspects
// the lease creates the object. An update of an object preserves its labels, its owner references, and the
// annotations of other programs.
//
// A name that Kubernetes does not allow for an object is escaped: for example, "jobs/nightly" is stored in the
// object "x--jobs-2fnightly". A name whose escaped form has more than 253 bytes is rejected. The README says
// which permissions a program needs.
//
// # Time
//
// Clients cannot read the clock of the API server, and the clocks of two clients can differ. So an object
// contains the remaining time of the lease, as of the last write of the object, instead of the time at which
// the lease ends. When a Store first sees a version of an object, the Store starts to count down the
// remaining time on its own monotonic clock. No clock needs to show the right time of day, but the rate of
// each clock must be right, with an error of at most [Options.MaxClockDrift]. The page docs/engines.md of the
// repository describes the consequences. In addition, if another program changes the object, for example by
// adding a label, contenders count the duration from the beginning, because the object has a new version. A
// change can therefore delay a takeover by one duration.
//
// # Tokens
//
// Every new token of a lease is newer than all earlier tokens of the same name. Tokens keep rising after a
// restart of the API server, and after the object of a lease is deleted, even if a person then creates it
// again from an old copy. Tokens also keep rising if a leader elector of client-go created the object, or
// if other programs held the lease between two grants.
//
// A new object has no record. The first grant updates the object, and gets a token that is higher than the
// resourceVersion that the object had before. Since version 1.35, Kubernetes guarantees that every
// resourceVersion is a number, and that a write to a Lease object gets a higher number than all earlier
// writes to Lease objects. Before 1.35, an API server that uses etcd also assigns such numbers, but
// Kubernetes does not guarantee them. If a resourceVersion is not a number, the Store returns an error.
//
// The README says which acts of an operator break the promises of this library.
//
// # Other programs
//
// Leader electors of client-go, which managers of controller-runtime use, can contend with a Session for the
// same object. At any time, at most one of them leads, except for the weaknesses of client-go's elector that
// the README lists, which also exist without this package.
//
// A lease that another program holds is reported as leased. Such a lease ends when its leaseDurationSeconds
// have passed since the Store first saw the current version of the object. If leaseDurationSeconds is not
// set, the lease never ends by itself. The Store reports an owner that begins with [ForeignOwner], and an ID
// that no request may use. Such a lease has no fencing token. If the other program still writes after the
// lease has ended, no guard can reject the write. A request that would end or change the lease fails with
// [lease.ErrForeign], and [Options.Limits] do not apply to it. If another program held the lease between two
// grants of this package, the second grant still has a newer token than the first.
//
// A contender waits with a watch, which sends no signal for the renewals of the holder. Without a signal, the
// contender waits for the remaining time of the lease, and then reads the lease again. The README says how many
// exchanges with the API server each request takes.
package kubelease
