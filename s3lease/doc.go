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
// consistent: a read returns what the last write has written. Each write contains a random text, because
// objects with equal contents would have equal ETags. A write has one of three results:
//
//   - It is granted.
//   - It is refused with the status 412, 409 (another write is in progress) or 404 (the object was deleted).
//     Because a proxy may have sent the request twice, the Store then reads the object. An object lists its
//     last writes, so the Store sees whether its own write was carried out.
//   - Its outcome is unknown, because there was no answer in time, the connection broke, or the status was
//     500 or above. This includes 503 (Slow Down), because S3 does not promise that such a request was not
//     carried out.
//
// The Store turns off the retries of the SDK, because a retry after a lost answer would be refused although
// the first write was granted. A Session tries again by itself. Before its first write, a Store checks that
// the service supports both conditions. If not, the Store returns a [*lease.PermanentError], because such a
// service would grant the same lease to several processes. The check cannot recognize a service that compares
// and writes in two steps.
//
// # Watches
//
// S3 cannot notify its clients, so a watch reads the object every [Options.PollInterval]. It signals every
// change except renewals. A renewal that was delayed on its way can be signalled, too.
package s3lease
