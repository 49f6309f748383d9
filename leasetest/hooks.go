package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// StoreHooks are functions with which [TestStore] does what the methods of a store cannot do.
type StoreHooks struct {
	// Reopen closes the store s and opens it again with the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Another makes a second client of the store s, as if in another process. Both clients use the
	// same data, but share no memory.
	Another func(t testing.TB, s lease.Store) lease.Store

	// Connect makes a new store that calls transmit for each message that a call of Load, Swap or
	// List waits for. A message is, for example, a request over HTTP or a statement of SQL. Each
	// page of a list is a separate message, and so is each attempt of a client library that sends a
	// message several times. The context of a message is the context of the call. Messages that no
	// call waits for, such as those of watches, pings and new connections, do not go through
	// transmit. While a message is delayed, for up to four Units, the suite makes other calls. The
	// suite can pass a store from Connect to Another. Set Connect if the store has a server that can
	// fail.
	Connect func(t testing.TB, transmit Transmit) lease.Store

	// LoseWatches breaks the connections that carry the signals of all watches of the store s.
	// Requests that are sent at this time may fail. The store must close the watches, or signal
	// changes again, within about the duration of a lease. Set LoseWatches if a watch of the store
	// can be lost.
	LoseWatches func(t testing.TB, s lease.Store)

	// Forget makes the store s forget all records that it is allowed to forget now. Forget returns
	// the retention time of the store. After a lease has expired or its break has ended, the store
	// must keep the record of the lease for at least this time.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of the named lease with data that is not a valid record, such as
	// an error in a manual edit.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// StepClock changes the clock from which the store s computes its time. The clock must move
	// forward by d, or backward if d is negative. Stores that Reopen returns later must use the
	// same clock. Set StepClock if the store takes its time from a clock that the test controls.
	StepClock func(t testing.TB, s lease.Store, d time.Duration)
}

// AuthorityHooks are functions with which [TestAuthority] does what the methods of an authority
// cannot do.
type AuthorityHooks struct {
	Reopen  func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Another func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Connect func(t testing.TB, transmit Transmit) lease.Authority // as in [StoreHooks]; a message is one that a call of Do or List waits for
	Corrupt func(t testing.TB, a lease.Authority, name string)    // as in [StoreHooks]

	// Put writes the record r under the given name. Put bypasses the authority a, so that the
	// authority cannot apply its limits to the record. Such records exist after a manual edit, or
	// after a change of the limits of the authority. Set Put, like Corrupt, if the authority keeps
	// its records in a store that the test can write to.
	Put func(t testing.TB, a lease.Authority, name string, r lease.Record)
}

// LeaseHooks are functions with which [TestLease] makes and disturbs the authority of a lease.
type LeaseHooks struct {
	// Authority makes the authority for the leases. Default: an authority over memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke ends the named lease as an operator would, for example by deleting its key. The holder
	// of the lease takes no part in the revocation. The lease stays locked for the given period.
	// Without CanBreak the period is 0. Set Revoke if the lease lacks CanUseAuthority or if the
	// authority lacks CanBreak.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut disconnects the lease l from its authority, so that the requests of l fail or block. The
	// returned function mend connects the lease again. Cut is for leases without CanUseAuthority.
	Cut func(t testing.TB, l lease.Lease) (mend func())
}

// GuardHooks are functions with which [TestGuard] does what the methods of a guard cannot do.
type GuardHooks struct {
	// Reopen closes the guard g and opens it again with the same data, as after a restart. Set
	// Reopen if the mark of the guard survives a restart.
	Reopen func(t testing.TB, g Guard) Guard
}
