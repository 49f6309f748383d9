// Package s3lease stores leases in a bucket of Amazon S3, or of another service with the same conditional
// writes. If a program already stores objects in such a service, it needs no additional server for its
// leases. Because each request takes tens of milliseconds and costs money, the package suits leases of a
// minute or more: see README.md.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	store, err := s3lease.New(s3.NewFromConfig(cfg), "my-bucket", nil)
//	l, err := store.Lease("jobs/nightly", &session.Options{Duration: time.Minute})
//
// # Writes
//
// Each lease is a small object. The Store reads the object with a GET request. To replace the object, the
// Store sends a PUT request with the header If-Match, which contains the ETag from the last read. S3 is
// consistent: a read returns what the last write has written. A write is refused with the status 412, 409
// (another write is in progress) or 404 (the object was deleted). README.md says when the outcome of a write is
// unknown, and which services support such writes.
//
// # Watches
//
// S3 cannot notify its clients, so a watch reads the object every [Options.PollInterval]. It signals every
// change except renewals. A renewal that was delayed on its way can be signalled, too.
package s3lease
