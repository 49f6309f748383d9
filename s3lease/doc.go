// Package s3lease keeps leases in a bucket of Amazon S3, or of another service that honours its conditional writes.
// A program that stores objects there already needs no other server. Because each request takes tens of
// milliseconds and costs money, the package suits leases of a minute or more: README.md says what they cost.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	store, err := s3lease.New(s3.NewFromConfig(cfg), "my-bucket", nil)
//	l, err := store.Lease("jobs/nightly", &session.Options{Duration: time.Minute})
//
// # Writes
//
// A lease is one small object, read by GET and replaced by PUT with If-Match and the ETag that was read. S3 is
// consistent: a read returns what the last write has written. Each write has a random member, because equal
// contents would have equal ETags. A write ends in one of three ways:
//
//   - It is granted.
//   - It is refused: 412, 409 (another write of the object is under way) or 404 (the object was deleted). The
//     Store then reads the object. If a proxy has repeated the request, the object is the one that it has written,
//     or names it among the last eight that were written before, and the write was granted after all.
//   - Its outcome is unknown: no answer in time, a broken connection, or a status of 500 or above. That includes 503
//     (Slow Down), because the documents of S3 do not say that such a request was not carried out.
//
// The Store turns off the retries of the SDK: a retry after a lost answer would be refused, although the first
// write was granted. A Session tries again by itself. Before its first write, a Store checks that the service
// honours both conditions, and returns a [*lease.PermanentError] if it does not: such a service would grant the
// same lease to several processes. The check cannot find a service that compares and writes in two steps.
//
// # Time
//
// The Store trusts no clock. An object says how much time the lease had left when it was written, and each process
// counts that down from when it first sees the write: see package engine. If a holder dies, a process that was
// already waiting acquires the lease as soon as no time is left, and one that starts later waits for the whole
// duration.
//
// # Watches
//
// S3 cannot notify its clients, so a watch reads the object every [Options.PollInterval]. It signals every change
// except renewals.
//
// # Tokens
//
// The tokens of a name begin at the time at which its object was created, in milliseconds on the clock of the
// service. So they go on rising if an object is deleted, by hand or by a lifecycle rule, unless the object existed
// for less than a second or the clock of the service was set back. No other promise depends on that clock.
package s3lease
