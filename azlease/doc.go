// Package azlease grants leases on blobs in Azure Storage.
//
//	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: azlease.NewTransport(nil)}}
//	client, err := container.NewClient(url, credential, o)
//	leases, err := azlease.New(client, nil)
//	l, err := leases.Lease("jobs/nightly", nil)
//
// The value l is used like any other [lease.Lease]. The Blob service itself grants the leases: acquire,
// renew, change, release and break are operations of the service. A lease therefore also excludes programs
// that lease the same blob with another client. A [Container] is a [lease.Authority] and a [lease.Lister],
// but not a [lease.Store].
//
// The name of a lease is the name of a blob in the container. If the blob does not exist, the first acquire
// creates an empty blob. A blob with data can be leased too: see Fence below.
//
// # What the service grants
//
// A lease lasts for 15 to 60 seconds, or is infinite. A break period is at most 60 seconds. azlease rejects a
// duration or a period that is out of range without sending a request. It rounds durations and periods down
// to whole seconds.
//
// The service reports neither the ID under which a lease is locked nor the remaining time of the lease. The
// documentation of [Container.Do] says what a result contains nevertheless. A session.Session knows its own
// lease ID, and computes the remaining time of its lease from the times of its own requests, so a Session works
// although the service reports neither of the two.
//
// The service refuses to renew a breaking lease. azlease then still reports the remaining time, so that a
// Session can continue its work until the grace period ends. The README says how much of the grace period is
// lost, and what else the service does not allow.
//
// # Tokens
//
// The service has no fencing tokens, so azlease stores the token of the last grant in the metadata of the
// blob:
//
//	leaseepoch     4294967297                         the number of the last grant, which is its token
//	leaseowner     worker-1                           escaped as in a URL
//	leaseduration  30s
//	leaseholder    5b6f0d2a9c3e4f708192a3b4c5d6e7f8   a digest of the lease ID
//
// A grant takes two steps: azlease first acquires the lease, and then writes the next epoch to the metadata.
// The service accepts that write only while the lease is locked under the ID of the grant and the blob has
// not changed since it was read, so no two grants have the same token. An acquire returns only after the
// second step. If the write fails, [Container.Do] releases the lease and returns an error, and the caller
// must treat the outcome of the acquire as unknown. If the answer to a write is lost, a token can be skipped.
// Between the two steps, a read returns the state Leased with the owner and the token of the previous grant.
//
// An upload replaces the metadata of a blob, and a deletion removes it. Tokens keep rising even then, because
// another blob of the container, [FloorBlob], stores a number that only rises. The token of the next grant is
// computed from this number, so it is newer than every earlier token of the lease.
//
// Each process should acquire leases under its own lease IDs, as a Session does. If two processes acquire a
// lease under the same ID, they share the lease. If the second process cannot write its token, Do does not
// release the lease while the blob still has the token of the first process. If an upload has removed that
// token, Do might release the lease although the first process still relies on it.
//
// A program should always acquire a lease under the same lease ID with the same duration, as a Session does.
// If one process acquires the lease again with a shorter duration while another process renews it under the
// same ID, the result of the renewal can contain the old, longer duration.
//
// The README says in which cases tokens can fall, and how many requests to the service each operation takes.
// Tokens can also fall if the metadata of a lease or of the floor blob is edited by hand.
//
// # Fence
//
// Data in the leased blob itself needs no other guard than the lease, if each write carries the access
// condition that [Fence] returns. Protect data elsewhere with a guard that checks the token (see package
// fencing).
//
// # What was tested, and what was not
//
// The tests run against blobtest, the test double of the service in this repository, and against the emulator
// Azurite 3.37.0. The test machines cannot reach the service itself. The behavior of the service was taken
// from these sources:
//
//   - The document Lease Blob describes the operations and their outcomes in each state, the durations
//     and the periods. It says that a lease operation changes neither ETag nor Last-Modified, and that a
//     break period has no effect if it is longer than the remaining time.
//   - Microsoft's error code tables, and client tests that run in the cloud, list the error codes. They
//     show that the service answers a read or a write under a wrong lease ID with status 412.
//   - Microsoft's SDK teams publish recordings of the service, which show the headers of each answer and
//     the code LeaseLost. They also show that the service truncates the remaining time to whole seconds
//     and compares lease IDs by value.
//   - The document Naming and Referencing Containers, Blobs, and Metadata states the rules for names of
//     blobs.
//   - The document Create a service SAS and the table of RBAC actions list the permissions.
//
// None of these sources confirms that the service evaluates conditional headers on every lease operation in
// the same way as the emulators. azlease sends such headers with two lease operations: with the break that it
// uses to learn the remaining time of a breaking lease, and with the release of a lease whose token could not
// be written.
package azlease
