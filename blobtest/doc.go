// Package blobtest is a double of the Azure Blob service for programs that use its leases.
// Real SDK clients, of any language, talk to it over HTTP; its clock belongs to the test, so
// that a lease of 15 seconds expires in no time.
//
//	srv, err := blobtest.NewServer(nil, nil)
//	defer srv.Close()
//	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
//	client, err := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, nil)
//	...                          // create, acquire
//	srv.Advance(15 * time.Second) // the lease has expired
//
// Programs in other languages start it as a command, github.com/fencedlease/lease/blobtest/cmd/blobtest.
//
// # Whose decisions
//
// The leases are those of a [lease.Authority]: of a memory.Store of the server's own, or of
// any other that is handed over, wrapped in faults or not. The server parses the request,
// asks the authority, and words the answer; whether a lease is granted, and whether a read
// or a write is admitted, is decided by the authority alone. For one blob the answer of the
// lease and the change of the content are one step: no other request to the server comes
// between them. (Whoever acts on the authority past the server can.)
//
// # What is served
//
// Lease Blob and Lease Container, all of both. Of the rest as much as consumers of leases
// need: create, list, delete, properties and metadata of containers; Put Blob, Put Block,
// Put Block List, Get Block List, Get Blob with ranges, Get Blob Properties, metadata,
// properties, Copy Blob within the account, Snapshot Blob, Delete Blob and List Blobs, with
// conditional headers. Shared Key, Shared Key Lite and shared access signatures of accounts
// and services are verified. Everything else is refused with the codes that the service
// has for what it does not support: append and page blobs, tags, access tiers and policies,
// batches and the properties of the account among it.
//
// The account is the first segment of the path, as in the emulator, or the first label of the
// host, as in the service, where ".blob." follows it: http://127.0.0.1:10000/name/box and
// http://name.blob.localhost:10000/box are the same container.
//
// # Where it differs from the service
//
// The age of a signed request is not looked at, since the test's clock is not the client's.
// A deleted container can be created again at once, and a copy is complete when it is
// answered. What a server keeps has an end, [Options.MaxTotal]. Any well-formed date from
// 2009-09-19 on is taken for a version. What net/http does not take for a request (400, 431,
// 501, 505), or for its Expect header (417), it answers itself, without a body of XML. Names of
// metadata keep their case through [NewServer] and [Handler.Serve]; in another server, and in a
// request that was sent ahead of the answer before it, they come back in lower case.
package blobtest
