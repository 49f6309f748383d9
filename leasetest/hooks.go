package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// StoreHooks contains functions that [TestStore] needs in addition to the methods of the store under test.
type StoreHooks struct {
	// Connect makes a new store that sends each of its messages through the function transmit. The store
	// passes the context of the call to this function. A message is whatever a call of Load, Swap or List
	// waits for, such as an HTTP request, an SQL statement or a page of a list. If a client library sends a
	// message several times, each attempt goes through transmit. If no call waits for a message, the store
	// sends the message without the function transmit. Examples are pings, and the messages of a watch.
	//
	// While a message is delayed, for up to four Units, the suite makes other calls. It may pass a store from
	// Connect to Another. Set Connect if the store has a server, because no other hook lets the suite make a
	// call between two messages of another call. Such a call reveals a read that does not lock what it reads.
	Connect func(t testing.TB, transmit Transmit) lease.Store

	// Reopen closes the store s and opens it again with the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Another makes a second client of the store s. Like a client in another process, the second client uses
	// the same data as s, but shares no memory with s.
	Another func(t testing.TB, s lease.Store) lease.Store

	// LoseWatches breaks the connections over which the watches of the store s receive their signals.
	// Requests may fail, too. The store must then either close the watches, or restore the connections and
	// signal changes again. It has about the duration of a lease to do so. Set LoseWatches if the store can
	// lose a watch.
	LoseWatches func(t testing.TB, s lease.Store)

	// Forget makes the store s delete all records that it is allowed to delete now. It returns how long the
	// store must keep a record after its lease has expired or its break has ended.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of the named lease with data that is not a valid record.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// StepClock moves the clock of the store s, that is, the clock from which the store computes its time.
	// The clock moves by the duration d, which may be negative. StepClock also moves the clock of all stores
	// that Reopen returns later.
	StepClock func(t testing.TB, s lease.Store, d time.Duration)
}

// AuthorityHooks contains functions that [TestAuthority] needs in addition to the methods of the authority.
type AuthorityHooks struct {
	Reopen  func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Another func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Connect func(t testing.TB, transmit Transmit) lease.Authority // as in [StoreHooks]; a message is one that a call of Do or List waits for
	Corrupt func(t testing.TB, a lease.Authority, name string)    // as in [StoreHooks]

	// Put writes the record r of the named lease, like a manual edit. It bypasses the authority, so that the
	// limits of the authority do not apply. Set the hooks Put and Corrupt if the test can write to the store
	// of the authority.
	Put func(t testing.TB, a lease.Authority, name string, r lease.Record)
}

// LeaseHooks contains functions with which [TestLease] makes and disturbs the authority of a lease.
type LeaseHooks struct {
	// Authority makes the authority for the leases. Default: an authority over memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke ends the named lease as an operator would, for example by deleting its key. The lease stays
	// locked for the given period, which is 0 without CanBreak. Set Revoke if the lease lacks
	// CanUseAuthority, or if the authority lacks CanBreak.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut disconnects the lease l from its authority, so that the requests of l fail or block. The returned
	// function mend connects the lease again. Cut is for leases without CanUseAuthority.
	Cut func(t testing.TB, l lease.Lease) (mend func())
}

// GuardHooks contains functions that [TestGuard] needs in addition to the methods of a guard.
type GuardHooks struct {
	// Reopen closes the guard g and opens it again with the same data, as a restart does. Set Reopen if the
	// guard remembers the newest token across restarts.
	Reopen func(t testing.TB, g Guard) Guard
}
