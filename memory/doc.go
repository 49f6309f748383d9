// Package memory keeps the leases of one process in memory.
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// The leases are lost when the process exits, and other processes do not see them. If two processes each make
// a Store, both can acquire the same lease, with the same token. Within the process, a Store is linearizable
// and never issues the same token twice for one lease. To make the tokens after a restart newer than those
// before it, set [Options.Floor].
//
// # Time
//
// A Store reads the wall clock only in [New], and then adds the time that has passed on the monotonic clock.
// Setting the wall clock therefore does not affect the end of a lease. On Linux, the monotonic clock stops
// while the computer is suspended, so the time of the Store stops too. A Store that is made inside a
// testing/synctest bubble uses the clock of the bubble.
//
// # Deletion of old records
//
// The memory of a Store does not grow forever, although no goroutine deletes old records. Instead, each write
// deletes a few old records, so that no write takes long. A Store deletes
//
//   - old Available records, so that at most [Idle] of them remain. The Store may delete an Available record
//     as soon as more than 64 records are Available. After a million names were leased and released once, at
//     most Idle records remain, even if no time passes.
//   - records that have been Expired or Broken for [Options.Retention]. Every write of a new name checks two
//     other records, so a Store has at most about twice as many records as it needs.
//
// Once a record is deleted, the last holder can no longer renew the lease, because the lease ID is deleted
// with the record. Tokens never decrease: if the name is leased again, the new token is newer than every
// token in the deleted records of all names.
package memory
