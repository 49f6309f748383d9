package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// StoreHooks let [TestStore] do what it cannot do through the methods of a store.
type StoreHooks struct {
	// Connect makes a new store that passes each of its messages to transmit, with the context of the
	// call. A message is whatever a call of Load, Swap or List waits for: a request over HTTP, a
	// statement of SQL, a page of a list, and each attempt of a client library that sends a message
	// several times. Messages that no call waits for, such as pings and the messages of watches, do not
	// go through transmit.
	//
	// While a message is delayed, for up to four Units, the suite makes other calls. It can pass a store
	// from Connect to Another. Set Connect if the store has a server: no other hook lets the suite make a
	// call between two messages of another call, and so find a read that does not lock what it reads.
	Connect func(t testing.TB, transmit Transmit) lease.Store

	// Reopen closes the store s and opens it again with the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Another makes a second client of the store s. Like a client in another process, it uses the same data
	// as s, but shares no memory with s.
	Another func(t testing.TB, s lease.Store) lease.Store

	// LoseWatches breaks the connections that carry the signals of all watches of the store s. Requests
	// may fail, too. Within about the duration of a lease, the store must close the watches, or signal
	// changes again. Set LoseWatches if a watch of the store can be lost.
	LoseWatches func(t testing.TB, s lease.Store)

	// Forget makes the store s delete all records that it may delete now. It returns for how long the
	// store must keep a record after its lease has expired or its break has ended.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of the named lease with data that is not a valid record.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// StepClock moves the clock from which the store s computes its time: forward by d, or backward if d
	// is negative. It also moves the clock of stores that Reopen returns later.
	StepClock func(t testing.TB, s lease.Store, d time.Duration)
}

// AuthorityHooks let [TestAuthority] do what it cannot do through the methods of an authority.
type AuthorityHooks struct {
	Reopen  func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Another func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Connect func(t testing.TB, transmit Transmit) lease.Authority // as in [StoreHooks]; a message is one that a call of Do or List waits for
	Corrupt func(t testing.TB, a lease.Authority, name string)    // as in [StoreHooks]

	// Put writes the record r under the given name without the authority a and its limits, as a manual edit
	// does. Set Put, like Corrupt, if the authority keeps its records in a store that the test can write to.
	Put func(t testing.TB, a lease.Authority, name string, r lease.Record)
}

// LeaseHooks let [TestLease] make and disturb the authority of a lease.
type LeaseHooks struct {
	// Authority makes the authority for the leases. Default: an authority over memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke ends the named lease as an operator would, for example by deleting its key. The lease stays
	// locked for the given period, which is 0 without CanBreak. Set Revoke if the lease lacks
	// CanUseAuthority or the authority lacks CanBreak.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut disconnects the lease l from its authority, so that its requests fail or block, until mend
	// connects it again. Cut is for leases without CanUseAuthority.
	Cut func(t testing.TB, l lease.Lease) (mend func())
}

// GuardHooks let [TestGuard] do what it cannot do through the methods of a guard.
type GuardHooks struct {
	// Reopen closes the guard g and opens it again with the same data, as after a restart. Set Reopen if the
	// mark of the guard survives a restart.
	Reopen func(t testing.TB, g Guard) Guard
}
