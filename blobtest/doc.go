// Package blobtest is a test double of the Azure Blob service, for programs that use blob leases. SDK clients
// of any language connect to it over HTTP. A test need not wait until a lease expires, because it can move
// the clock of the server forward.
//
//	srv, err := blobtest.NewServer(nil, nil)
//	defer srv.Close()
//	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
//	client, err := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, nil)
//	...                           // create a container and a blob, acquire its lease
//	srv.Advance(15 * time.Second) // the lease has expired
//
// [Handler.RoundTrip] answers requests without a network, so it works in a bubble of testing/synctest.
//
// Programs in other languages can start the command github.com/fencedlease/lease/blobtest/cmd/blobtest. The
// README has examples for several languages.
//
// # Leases
//
// A [lease.Authority] decides about the leases: whether a lease is granted, and whether a lease admits a read
// or a write. NewServer creates an authority in memory, but you can also pass your own, for example to inject
// faults. The server translates the decisions into the status codes and error codes of the service.
//
// When a client writes to a blob, the server checks the lease and changes the content in one step. However, a
// program that calls the authority directly can change the lease at any time. Each request has a single time,
// which the header Date of the answer shows. If the server created the authority, it is the time of the
// decision.
//
// # What is served
//
// The server serves all operations of Lease Blob and Lease Container, and those that users of leases need:
//
//   - for the account: List Containers, Get Blob Service Properties, Get Account Information
//   - for containers: create, list, delete, properties and metadata, also for $root, $web and $logs
//   - for blobs: Put Blob, Put Block, Put Block List, Get Block List, Get Blob with ranges, Get Blob
//     Properties, metadata, properties, Copy Blob within the account, Snapshot Blob and Delete Blob
//
// The server evaluates conditional headers. It verifies the signatures of Shared Key and Shared Key Lite, and
// the shared access signatures of accounts and services. It stores and returns the access tier of a blob and
// the public access of a container, but they have no other effect.
//
// The server refuses append and page blobs, tags, access policies, batches, and changes to the properties of
// the account. For these requests, it uses the error code that the service has for unsupported features.
//
// The first segment of the path of a URL names the account, as in the storage emulator. The account can also
// be the first label of a host name that continues with ".blob.", as in the service. For example,
// http://127.0.0.1:10000/name/box and http://name.blob.localhost:10000/box are the same container.
//
// # Differences from the service
//
//   - The age of a signed request is ignored, because a client does not run on the test's clock.
//   - A deleted container can be created again at once.
//   - A copy is complete when its request is answered.
//   - [Options.MaxTotal] limits how many bytes a server stores.
//   - Any date from 2009-09-19 on is accepted as a version.
//   - net/http itself refuses malformed requests (400, 431, 501, 505) and Expect headers (417). Its
//     answers have no body of XML.
//   - Names of metadata keep their case only through [NewServer] and [Handler.Serve]. Another server, and any
//     for a pipelined request, returns them in lower case.
package blobtest
