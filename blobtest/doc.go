// Package blobtest is a double of the Azure Blob service for programs that use its leases. SDK clients
// of any language talk to it over HTTP. A test controls its clock, so a lease of 15 seconds expires at
// once.
//
//	srv, err := blobtest.NewServer(nil, nil)
//	defer srv.Close()
//	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
//	client, err := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, nil)
//	...                           // create a container and a blob, acquire its lease
//	srv.Advance(15 * time.Second) // the lease has expired
//
// [Handler.RoundTrip] answers without a network, for tests in a bubble of testing/synctest.
//
// Programs in other languages start the command
// github.com/fencedlease/lease/blobtest/cmd/blobtest. The README has examples for several languages.
//
// # Leases
//
// A [lease.Authority] grants the leases. NewServer makes one in memory, or takes any other, wrapped in
// faults or not. The server parses a request, asks the authority, and answers in the words of the
// service. The authority alone decides whether a lease is granted and whether a read or a write is
// admitted.
//
// For each blob, the answer of the lease and the change of the content are one step: no other request to
// the server comes between them. A program that acts on the authority directly can.
//
// A request has one time. It is decided, committed and answered at one instant of the clock, if the
// server made the authority.
//
// # What is served
//
// The server serves all of Lease Blob and Lease Container. Of the other operations it serves those that
// users of leases need:
//
//   - of the account: List Containers, Get Blob Service Properties, Get Account Information
//   - of containers: create, list, delete, properties and metadata, also for $root, $web and $logs
//   - of blobs: Put Blob, Put Block, Put Block List, Get Block List, Get Blob with ranges, Get Blob
//     Properties, metadata, properties, Copy Blob within the account, Snapshot Blob and Delete Blob
//
// It evaluates conditional headers, and verifies Shared Key, Shared Key Lite and the shared access
// signatures of accounts and services. It keeps and shows the access tier of a blob and the public access
// of a container, but neither has an effect.
//
// Everything else is refused with the codes that the service has for what it does not support: append and
// page blobs, tags, access policies, batches, and changes to the properties of the account.
//
// The account is the first segment of the path, as in the emulator. It can also be the first label of the
// host, as in the service, if ".blob." follows it. http://127.0.0.1:10000/name/box and
// http://name.blob.localhost:10000/box are the same container.
//
// # Differences to the service
//
//   - The age of a signed request is ignored, because a client does not run on the test's clock.
//   - A deleted container can be created again at once.
//   - A copy is complete when it is answered.
//   - [Options.MaxTotal] limits what a server keeps.
//   - Any date from 2009-09-19 on is accepted as a version.
//   - net/http itself refuses malformed requests (400, 431, 501, 505) and Expect headers (417), without a
//     body of XML.
//   - Names of metadata keep their case through [NewServer] and [Handler.Serve] only. In another server,
//     and in a pipelined request, they come back in lower case.
package blobtest
