// Package azlease grants leases of blobs in Azure Storage.
//
//	client, err := container.NewClient(url, credential, nil)
//	leases, err := azlease.New(client, nil)
//	l, err := leases.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. The Blob service itself grants the leases: acquire, renew,
// change, release and break are its operations with these names, and it alone decides. So azlease excludes
// every program that leases the same blob, whatever client it uses. A [Container] is a [lease.Authority]
// and a [lease.Lister]. It is not a [lease.Store].
//
// The name of a lease is the name of its blob in one container. If there is no such blob, the first
// acquire makes an empty one. A blob with data can be leased too; see Fence below.
//
// # What the service grants
//
// A lease lasts for 15 to 60 seconds, or is infinite. A break period has up to 60 seconds. Anything else is
// refused before a request is sent. Parts of a second in a duration or a period are dropped.
//
// The service tells neither the ID in force nor how much time is left. So answers hide both: a read and a
// list show the state, and of the last grant the owner, the duration and the token, but no ID, and
// [lease.Result.MaxRemaining] is the whole duration. A session.Session needs no more: it knows its own ID,
// and counts from its own requests. What it cannot do is to take over the lease of an earlier process with
// the same owner, for which it would have to know the ID. Container.Lease refuses that option.
//
// A renewal of a lease that is breaking is refused, and the refusal shows how much time is left, so that a
// Session works until the end of its grace. The service tells that in whole seconds, and calls them
// approximate. Up to two seconds of a grace period are given away.
//
// There are no signals. A waiting process looks every RenewInterval.
//
// # Tokens
//
// The service has no fencing tokens. The metadata of the blob has one:
//
//	leaseepoch     4294967297                         the number of the last grant, which is its token
//	leaseowner     worker-1                           escaped as in a URL
//	leaseduration  30s
//	leaseholder    5b6f0d2a9c3e4f708192a3b4c5d6e7f8   a digest of the lease ID
//
// A grant has two steps. The first acquires the lease. The second writes the next epoch, under the lease and
// on the condition that the blob is what was read. Only then is the grant answered. If the second step
// fails, the outcome is unknown, and the lease is released. So no two grants have the same token. A write
// whose answer was lost leaves a gap. Between the two steps a read shows the lease as leased, with the owner
// and the token of the grant before.
//
// An upload replaces the metadata of a blob, and a deletion removes it. Tokens rise all the same: the next
// grant then takes a number from another blob of the container, [FloorBlob].
//
// An ID should keep its duration. If a process acquires again under an ID that it has, with a shorter
// duration, then a renewal by another process at the same time may be answered with the longer one. A
// Session never does that.
//
// # When the promises do not hold
//
//   - Tokens fall if the container is deleted, or restored to an earlier time, or if the floor blob is
//     deleted together with the blob of a lease, or either is edited by hand.
//   - A lease ends early if the container is deleted, which the service allows even while blobs in it are
//     leased.
//   - After a failover of the account to its secondary region, writes of the last minutes may be missing.
//     The documents do not say what becomes of leases. Do not count on leases or tokens across a failover.
//
// # Fence
//
// Data in the leased blob itself needs no other guard. The service refuses a write with status 412 once the
// lease under whose ID it was sent is not in force:
//
//	_, err = blob.UploadBuffer(ctx, data, &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(l.ID())})
//
// Data elsewhere needs the token: see package fencing.
//
// # Exchanges
//
// A renewal is one exchange, and two after each write of the blob. A release, a refusal and a read are one.
// An acquire is two if this process wrote the last token of the name, and otherwise three. The first acquire
// of a name is six. A list is one for each page of 5,000 blobs.
//
// # What was tested, and what was not
//
// The tests run against blobtest, the double of the service in this repository, and against the emulator
// Azurite 3.37.0. They do not run against the service itself, which cannot be reached from where they run.
// What azlease relies on was taken from these sources:
//
//   - The document Lease Blob: the operations and their outcomes in each state, the durations and periods,
//     that a lease operation changes neither ETag nor Last-Modified, and that a period longer than the time
//     that is left has no effect.
//   - Microsoft's error code tables and client tests that run in the cloud: the error codes, and that a use
//     with a wrong ID is answered 412.
//   - Recordings of the service that Microsoft's SDK teams publish: the headers of each answer, the code
//     LeaseLost, that the time left is truncated to whole seconds, and that a lease ID is compared by value.
//   - The document Naming and Referencing Containers, Blobs, and Metadata: the names of blobs.
//   - The documents Create a service SAS and the table of RBAC actions: the permissions.
//
// Not confirmed by any of them: that conditional headers are evaluated on every lease operation in the same
// way as in the emulators. Only a break that asks for the time left and a release after a failed grant
// depend on that.
package azlease
