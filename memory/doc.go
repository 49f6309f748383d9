// Package memory keeps the leases of one process in memory.
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// The leases are lost when the process exits, and other processes do not see them: two processes that each
// make a Store both acquire the same lease, with the same token. Within the process, a Store is
// linearizable and never issues the same token twice for one lease. Set [Options.Floor] so that the tokens
// after a restart are newer than those before it.
//
// # Time
//
// A Store reads the wall clock only in [New], and then adds the time that has passed on the monotonic
// clock. Setting the wall clock therefore does not affect the end of a lease. On Linux, the monotonic clock
// stops while the computer is suspended, so the time of the Store stops too. A Store that is made inside a
// testing/synctest bubble uses the clock of the bubble.
//
// # Forgetting
//
// A Store has no goroutine. Each write deletes a bounded number of old records instead, so no write takes
// long. A Store forgets
//
//   - old Available records, so that at most [Idle] of them remain. It may forget an Available record as soon
//     as more than 64 records are Available. A million names that are leased and released once leave at most Idle
//     records behind, even if no time passes.
//   - records that have been Expired or Broken for [Options.Retention]. Every write of a new name checks
//     two other records, if any can be due, so a Store remembers at most about twice as many records as it must.
//
// A Store that forgets a record also forgets the last lease ID in it, so the last holder can no longer renew.
// Tokens never decrease: if a forgotten name is leased again, its token is newer than every token of every
// forgotten name.
package memory
