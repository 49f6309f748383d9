// Package azlease grants leases on blobs in Azure Storage.
//
//	client, err := container.NewClient(url, credential, nil)
//	leases, err := azlease.New(client, nil)
//	l, err := leases.Lease("jobs/nightly", nil)
//
// The value l is used like any other [lease.Lease]. The Blob service itself grants the leases.
// Acquire, renew, change, release and break are operations of the service. A lease therefore also
// excludes programs that use another client to lease the same blob. A [Container] is a
// [lease.Authority] and a [lease.Lister]. It is not a [lease.Store].
//
// The name of a lease is the name of a blob in the container. If the blob does not exist, the first
// acquire creates an empty blob. A blob with data can be leased too; see Fence below.
//
// # What the service grants
//
// A lease lasts for 15 to 60 seconds, or is infinite. A break period is at most 60 seconds. If the
// duration or the period of a request is out of range, the request is refused before it is sent.
// Fractions of a second in a duration or a period are dropped.
//
// The service reports neither the lease ID in force nor the remaining time of a lease. A read and a
// list therefore return no lease ID. A read and a list return the state of the lease, and the owner,
// the duration and the token of the last grant. For a leased blob, [lease.Result.MaxRemaining] is the
// whole duration of the last grant. If a program without azlease has leased the blob since, or if a grant
// is between its two steps, the lease can last longer than that, for up to a minute.
//
// A session.Session needs no reported lease ID or remaining time, because it knows its own ID and
// measures time from its own requests. A Session over azlease cannot take over the lease of an earlier
// process with the same owner. To take over the lease, the Session would have to know the lease ID of
// that process. Container.Lease therefore refuses the option TakeOver.
//
// The service refuses to renew a breaking lease. A refused renewal still reports the remaining time,
// so a Session can continue its work until the grace period ends. The service rounds the remaining
// time down to whole seconds, and documents it as approximate. Because of the rounding, a Session may
// lose up to two seconds of a grace period.
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
// A grant takes two steps. The first step acquires the lease. The second step writes the next epoch to
// the metadata. The service accepts the write of the epoch only while the lease is in force and the
// blob has not changed since it was read. An acquire returns only after the second step. If the write
// of the epoch fails, Do releases the lease and returns an error that means an unknown outcome.
// Therefore no two grants have the same token. If the answer to a write is lost, a token may be
// skipped. After the lease is acquired and before the epoch is written, a read returns the state
// Leased with the owner and the token of the previous grant.
//
// An upload replaces the metadata of a blob, and a deletion removes it. Tokens continue to rise,
// because the next grant then takes a number from another blob of the container, [FloorBlob].
//
// A program should always use a lease ID with the same duration. If a process acquires a lease again
// with a shorter duration while another process renews the lease under the same ID, the answer to the
// renewal may contain the longer duration. A Session never changes the duration of an ID.
//
// # When the promises do not hold
//
//   - Tokens can fall if the container is deleted or restored to an earlier time.
//   - Tokens can also fall if the floor blob is deleted together with the blob of a lease, or if
//     either blob is edited by hand.
//   - A lease ends early if its container is deleted. The service allows this even while blobs in the
//     container are leased.
//   - After a failover of the account to its secondary region, writes of the last minutes may be
//     missing. The documentation does not say whether leases survive a failover. Do not rely on leases
//     or tokens across a failover.
//
// # Fence
//
// Data in the leased blob itself needs no guard besides the lease. If a write carries a lease ID, the
// service accepts it only while the lease is in force under that ID. It refuses any other write with
// status 412:
//
//	_, err = blob.UploadBuffer(ctx, data, &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(l.ID())})
//
// Data elsewhere needs a guard that checks the token; see package fencing.
//
// # Requests to the service
//
// A renewal takes one request to the service. After each write of the blob, the next renewal takes
// two. A release, a refusal and a read take one request each. An acquire takes two requests if this
// process wrote the last token of the name. Otherwise an acquire takes three. If an upload has replaced
// the metadata, it takes up to two more. The first acquire of a name takes six. A list takes one request
// for each page of up to 5,000 blobs.
//
// # What was tested, and what was not
//
// The tests run against blobtest, the double of the service in this repository. They also run against
// the emulator Azurite 3.37.0. The tests do not run against the service itself, because the test
// machines cannot reach the service. The behavior of the service was taken from these sources:
//
//   - The document Lease Blob describes the operations and their outcomes in each state, the durations
//     and the periods. It says that a lease operation changes neither ETag nor Last-Modified. It also
//     says that a break period has no effect if it is longer than the remaining time.
//   - Microsoft's error code tables, and client tests that run in the cloud, list the error codes.
//     They show that a read or a write with a wrong lease ID is answered 412.
//   - Recordings of the service that Microsoft's SDK teams publish show the headers of each answer and
//     the code LeaseLost. They show that the service truncates the remaining time to whole seconds and
//     compares lease IDs by value.
//   - The document Naming and Referencing Containers, Blobs, and Metadata states the rules for names
//     of blobs.
//   - The document Create a service SAS and the table of RBAC actions list the permissions.
//
// None of these sources confirms that the service evaluates conditional headers on every lease
// operation in the same way as the emulators. Package azlease sends conditional headers when it breaks
// a lease again to learn the remaining time, and when it releases a lease after a failed grant.
package azlease
