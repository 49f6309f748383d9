package leasetest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// StoreHooks are functions with which [TestStore] does what the methods of a store cannot do.
type StoreHooks struct {
	// Connect makes a new store that calls transmit, with the context of the call, for each message that
	// a call of Load, Swap or List waits for: a request over HTTP, a statement of SQL, a page of a list,
	// and each attempt of a client library that sends a message several times. Messages that no call
	// waits for, such as those of watches and pings, do not go through transmit. While a message is
	// delayed, for up to four Units, the suite makes other calls. It can pass a store from Connect to
	// Another. Set Connect if the store has a server: no other hook lets the suite make a call between two
	// messages of another call, and so find a read that does not lock what it reads.
	Connect func(t testing.TB, transmit Transmit) lease.Store

	// Reopen closes the store s and opens it again with the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Another makes a second client of the store s, as if in another process: both use the same data, but
	// share no memory.
	Another func(t testing.TB, s lease.Store) lease.Store

	// LoseWatches breaks the connections that carry the signals of all watches of the store s, and may
	// fail requests. The store must close the watches, or signal changes again, within about the duration
	// of a lease. Set LoseWatches if a watch of the store can be lost.
	LoseWatches func(t testing.TB, s lease.Store)

	// Forget makes the store s forget all records that it is allowed to forget now. It returns for how
	// long the store must keep a record after its lease has expired or its break has ended.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of the named lease with data that is no valid record.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// StepClock moves the clock from which the store s, and stores that Reopen returns later, compute
	// their time: forward by d, or backward if d is negative.
	StepClock func(t testing.TB, s lease.Store, d time.Duration)
}

// AuthorityHooks are functions with which [TestAuthority] does what the methods of an authority cannot do.
type AuthorityHooks struct {
	Reopen  func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Another func(t testing.TB, a lease.Authority) lease.Authority // as in [StoreHooks]
	Connect func(t testing.TB, transmit Transmit) lease.Authority // as in [StoreHooks]; a message is one that a call of Do or List waits for
	Corrupt func(t testing.TB, a lease.Authority, name string)    // as in [StoreHooks]

	// Put writes the record r under the given name without the authority a and its limits, as a manual edit
	// does. Set Put, like Corrupt, if the authority keeps its records in a store that the test can write to.
	Put func(t testing.TB, a lease.Authority, name string, r lease.Record)
}

// LeaseHooks are functions with which [TestLease] makes and disturbs the authority of a lease.
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

// GuardHooks are functions with which [TestGuard] does what the methods of a guard cannot do.
type GuardHooks struct {
	// Reopen closes the guard g and opens it again with the same data, as after a restart. Set Reopen if the
	// mark of the guard survives a restart.
	Reopen func(t testing.TB, g Guard) Guard
}
