// Package azlease grants leases on blobs in Azure Storage.
//
//	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: azlease.NewTransport(nil)}}
//	client, err := container.NewClient(url, credential, o)
//	leases, err := azlease.New(client, nil)
//	l, err := leases.Lease("jobs/nightly", nil)
//
// The value l is used like any other [lease.Lease]. The Blob service itself grants the leases.
// Acquire, renew, change, release and break are operations of the service. A lease therefore also
// excludes programs that use another client to lease the same blob. A [Container] is a
// [lease.Authority] and a [lease.Lister]. A Container is not a [lease.Store].
//
// The name of a lease is the name of a blob in the container. If the blob does not exist, the first
// acquire creates an empty blob. A blob with data can be leased too; see Fence below.
//
// # What the service grants
//
// A lease lasts for 15 to 60 seconds, or is infinite. A break period is at most 60 seconds. If the
// duration or the period of a request is out of range, azlease refuses the request and sends nothing.
// Fractions of a second in a lease duration or a break period are dropped.
//
// The service reports neither the lease ID in force nor the remaining time of a lease. A read and a
// list therefore return no lease ID. A read and a list return the state of the lease, and three
// facts about the last grant: the owner, the duration and the token. The Container knows the IDs of
// its own refused acquires, so a read shows a lease that was handed over to one of them. For a leased
// blob, [lease.Result.MaxRemaining] is the whole duration of the last grant. A finite lease can last
// longer than MaxRemaining if a program that does not use azlease has leased the blob since the
// last grant. A finite lease can also last longer than MaxRemaining if a process has just acquired
// the lease, but has not written its token yet. In both cases, the lease lasts for at most a minute
// if no process renews it.
//
// A session.Session needs neither the lease ID nor the remaining time from the service. A Session
// knows its own lease ID, and measures the time since its own requests. A Session over azlease cannot
// take over the lease of an earlier process with the same owner. To take over the lease, the Session
// would have to know the lease ID of the earlier process. Container.Lease therefore refuses the
// option TakeOver.
//
// The service refuses to renew a breaking lease. When a renewal is refused, azlease still reports
// the remaining time, so a Session can continue its work until the grace period ends. The service
// rounds the remaining time down to whole seconds. azlease subtracts one more second, because the
// documentation of the service says that the remaining time is approximate. If the grace period is
// a whole number of seconds, a Session can therefore lose up to two seconds of it. In addition, a
// Session allows for the drift of clocks, as it does for every lease.
//
// The service sends no notifications. A waiting process reads the lease every RenewInterval.
//
// # Tokens
//
// The service has no fencing tokens. The metadata of the blob stores the token of the last grant:
//
//	leaseepoch     4294967297                         the number of the last grant, which is its token
//	leaseowner     worker-1                           escaped as in a URL
//	leaseduration  30s
//	leaseholder    5b6f0d2a9c3e4f708192a3b4c5d6e7f8   a digest of the lease ID
//
// A grant takes two steps. The first step acquires the lease. The second step writes the next epoch
// to the metadata. The service accepts the write of the epoch only while the lease is in force and
// the blob has not changed since it was read. An acquire returns only after the second step.
// Because the service checks both conditions, no two grants have the same token. If the write of
// the epoch fails, Do releases the lease and returns an error. The caller must then treat the
// outcome of the acquire as unknown. If the answer to a write is lost, a token can be skipped.
// Between the two steps of a grant, a read returns the state Leased with the owner and the token of
// the previous grant.
//
// An upload replaces the metadata of a blob, and a deletion removes the metadata. After an upload or
// a deletion, tokens continue to rise, because another blob of the container, [FloorBlob], stores a
// number that only rises. The token of the next grant is computed from this number, so it is higher
// than every earlier token of the lease.
//
// Each process should acquire leases under lease IDs of its own, as a Session does. If two
// processes acquire a lease under the same ID, they share that lease. If the second process cannot
// write its epoch, Do checks whether the blob still has the token of the first process. If the blob
// still has the token of the first process, Do does not release the lease. If an upload has removed
// the token of the first process, Do might release the lease, although the first process still
// relies on the lease.
//
// A program should acquire a lease under the same lease ID with the same duration each time.
// Suppose that two processes use the same ID. One process acquires the lease again with a shorter
// duration, while the second process renews the lease. The result of the renewal can then contain
// the old, longer duration. A Session never changes the duration of an ID.
//
// # When the promises do not hold
//
//   - Tokens can fall if the container is deleted or restored to an earlier time.
//   - Tokens can also fall if the floor blob is deleted together with the blob of a lease, or if
//     either blob is edited by hand.
//   - A lease ends early if its container is deleted. The service allows the deletion even while
//     blobs in the container are leased.
//   - After a failover of the account to its secondary region, writes of the last minutes can be
//     missing. The documentation does not say whether leases survive a failover. Do not rely on leases
//     or tokens across a failover.
//
// # Fence
//
// Data in the leased blob itself needs no guard besides the lease. If a write carries a lease ID,
// the service accepts the write only while the lease is in force under that ID. If the lease is not
// in force under that ID, the service refuses the write with status 412:
//
//	_, err = blob.UploadBuffer(ctx, data, &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(l.ID())})
//
// If the data is not in the leased blob, protect it with a guard that checks the token (see package
// fencing).
//
// # Requests to the service
//
// A renewal takes one request to the service. After each write of the blob, the next renewal takes
// two requests. A release, a read and a refused operation take one request each, with one
// exception. A renewal that is refused after a break takes two requests if the lease is broken, and
// up to four if the lease is breaking. An acquire takes two requests if the same process also made
// the last granted acquire of the lease, and three requests if not. If an upload has replaced the
// metadata, an acquire takes up to five requests. The first acquire of a name takes six requests. A
// list takes one request for each page of up to 5,000 blobs.
//
// # What was tested, and what was not
//
// The tests run against blobtest, the test double of the service in this repository. The tests also
// run against the emulator Azurite 3.37.0. The tests do not run against the service itself, because
// the test machines cannot reach the service. The behavior of the service was taken from these
// sources:
//
//   - The document Lease Blob describes the operations and their outcomes in each state, the
//     durations and the periods. The document says that a lease operation changes neither ETag nor
//     Last-Modified. The document also says that a break period has no effect if it is longer than
//     the remaining time.
//   - Microsoft's error code tables, and client tests that run in the cloud, list the error codes.
//     The tables and the tests show that the service answers a read or a write under a wrong lease
//     ID with status 412.
//   - Microsoft's SDK teams publish recordings of the service, which show the headers of each answer
//     and the code LeaseLost. The recordings also show that the service truncates the remaining time
//     to whole seconds and compares lease IDs by value.
//   - The document Naming and Referencing Containers, Blobs, and Metadata states the rules for names
//     of blobs.
//   - The document Create a service SAS and the table of RBAC actions list the permissions.
//
// None of these sources confirms that the service evaluates conditional headers on every lease
// operation in the same way as the emulators. Package azlease sends conditional headers with two
// lease operations. The first operation is a break that azlease sends to learn the remaining time of
// a breaking lease. The second operation is the release of a lease whose token could not be written.
package azlease
