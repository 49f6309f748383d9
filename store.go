package lease

import (
	"context"
	"time"
)

// A Store keeps one record for each name and replaces records atomically. A Store makes no decisions about
// leases, which are up to the [Authority] that [NewAuthority] makes from the Store.
//
// To write a Store:
//
//  1. Choose where the record of a name is stored. Different names must have different places, so do not
//     fold case, shorten names or replace characters. Refuse a name if [CheckName] refuses it, or if the
//     database cannot store it.
//  2. Write all fields of a record in one write. Use [Record.MarshalText], [Record.MarshalJSON] or one column
//     for each field. Call [Record.Validate] on every record that you read. If a record cannot be read,
//     return an error that contains the name of the lease, and never treat the lease as free.
//  3. Give every write a version. A name must never get the same version twice, even if an equal record is
//     written, a record is deleted and created again, or the store restarts. A hash of the content is not a
//     version, because equal contents have the same hash. A simple way to make versions is to have two
//     counters for the whole store. The version of a record is then the number of its write, such as "w17".
//     The version of a name without a record is the number of deletions so far, such as "d3". The second
//     counter must not count writes, because processes that acquire different new names at the same time
//     would otherwise get conflicts.
//  4. Never let an Epoch decrease. [Record.ValidateAfter] returns an error for a record with a lower Epoch.
//     If a deleted name is created again, its Epoch must be at least as high as before. A simple way to make
//     sure of this is to store one number: the highest Epoch of all deleted records.
//  5. Read the time from the clock of the database, and only after the record is locked. If Swap read the
//     time before it waited for the lock, Swap could renew a lease that has ended meanwhile. Load must wait
//     for the same lock: otherwise it could show that a lease has expired although a Swap that read its time
//     earlier is about to renew it. The time must not decrease, not even from one name to another. If clients
//     cannot read the clock of the database, do not write a Store, but implement a Backend of package engine.
//     If all clients run on one machine, use the clock of that machine, and store its last reading together
//     with the data.
//  6. Make Load read the record that was committed last. Do not answer from a cache or a replica.
//  7. Make Swap compare the version and write in one atomic step. Swap must also compare the time, and return
//     ErrConflict if the Until of the record was reached after the load.
//  8. Return [ErrConflict] only if the record was certainly not written. After any other error of Swap, the
//     outcome is unknown. If a retry cannot fix an error, mark it with [Permanent]. Return soon after the
//     context ends, even if the client library of the database does not.
//  9. Implement the optional interfaces [Watcher], [Lister] and [Limiter] if the database allows it.
//  10. Run leasetest.TestStore, and set the fields of leasetest.StoreHooks. Set Connect first, because only
//     with Connect can the suite find the most frequent mistake: a Swap that reads the record or the time
//     without a lock. Then set Another, Reopen, LoseWatches, Forget, Corrupt and StepClock. TestStore checks
//     rules 1 to 9 as far as a client can see them. leasetest/PEERS.md lists what no rule checks.
//  11. Give the store a method named Authority, which passes the store to [NewAuthority] and returns the
//     result. Pass this result to leasetest.TestAuthority. If the database can decide under a lock or in one
//     round trip, the method can instead return a faster Authority that calls [Decide].
//
// A Store must be linearizable and must keep every write that it acknowledged, because otherwise two holders
// can get the same lease. The methods of a Store must be safe for concurrent use.
type Store interface {
	// Load returns the current record of the lease with the given name. If the store has no record of the name,
	// Load returns a Record that is zero except for its Epoch. This Epoch must be at least as high as the
	// Epoch of every record that the store has deleted. A store can follow this rule with a single number:
	// the highest Epoch of all deleted records, regardless of their names.
	//
	// A store may delete a record that is Available. A store may also delete a record that has been Expired
	// or Broken for a certain time, which the documentation of the store must state.
	Load(ctx context.Context, name string) (Snapshot, error)

	// Swap replaces the record of the given name with a new record, the parameter next, and returns the new
	// Snapshot. The caller has computed the new record from an earlier Snapshot, the parameter old.
	//
	// If the version of the record is no longer old.Version, Swap returns [ErrConflict]. A store with a clock
	// also returns ErrConflict if the state in old.Record has ended since the time old.Now. This state ends
	// when the clock of the store reaches the time old.Record.Until. The new record, which the caller has
	// computed from the state in old.Record, is then out of date.
	//
	// ErrConflict means that the new record was certainly not written. Together with ErrConflict, Swap
	// returns the current Snapshot, or the zero Snapshot if the store would need another request to read the
	// current record. A store may return ErrConflict spuriously, but not forever.
	//
	// If Swap returns another error, the outcome is unknown. The store might have written the new record, or
	// might still write it.
	Swap(ctx context.Context, name string, old Snapshot, next Record) (Snapshot, error)
}

// A Snapshot is a record with its version and the store's time.
type Snapshot struct {
	// Record is the record as it was written. The State of the record might have ended since then. To get the
	// record as it was at the time of the Load or Swap, pass the time in the field Now to [Record.At].
	Record Record

	// Version is the version that Swap compares. Version is opaque and never empty. A name never gets the
	// same version twice: if an equal record is written again, it gets a new version, even after a restart of
	// the store. A name without a record has a version too. After the deletion of a record, the name has a
	// version that differs from all earlier versions of this name.
	Version string

	// The field Now is the time at which the store carried out the Load or Swap. It is a time on the clock of
	// the store. If the store has no clock, the field Now is a time on the clock of the process that uses the
	// store. The time in the field Now never decreases, and is never earlier than the time at which an
	// authority computed Record.
	Now time.Time

	// Uncertainty bounds the error of Record.Until: the lease can end earlier than Record.Until, but by no
	// more than Uncertainty. For a store with a clock, Uncertainty is the tick of that clock, because the
	// true time can be up to one tick later than Now. If the clock is precise, Uncertainty is zero.
	//
	// If the store has no clock, each process computes Record.Until from the time at which it first read this
	// Version of the record. Record.Until is then the latest time at which the lease can end, and Uncertainty
	// is the difference between the latest and the earliest such time.
	Uncertainty time.Duration
}

// The method Ended reports whether the state of the record ends after the time s.Now, but not after the
// parameter now. If Ended returns true at the time of a Swap, the Swap must return [ErrConflict], because its
// caller has computed the new record from a state that has ended.
func (s Snapshot) Ended(now time.Time) bool {
	until := s.Record.Until
	return !until.IsZero() && s.Now.Before(until) && !now.Before(until)
}

// A Watcher signals changes of leases. Watcher is an optional interface of a [Store] or an [Authority]. A
// type that wraps a Watcher must be a Watcher, too.
type Watcher interface {
	// Watch returns a channel with a capacity of 1. After Watch has returned, the channel receives a signal
	// after every change that
	//
	//   - unlocks the lease,
	//   - makes the lease Breaking,
	//   - moves the end of the lease to an earlier time, or
	//   - gives a locked lease to another ID or owner.
	//
	// One signal may stand for several changes. The channel may also receive a signal after other changes,
	// such as a renewal, or the grant of an unlocked lease. No signal is sent before a Load can return the
	// changed record. The documentation of a Store must state how soon after a change the signal is sent, and
	// how long it can be delayed if a process crashes.
	//
	// The channel is closed when ctx ends or when the watch is lost. If the watch is lost, call Watch again
	// and then read the record, because signals may have been missed.
	//
	// Watch sends no signal if a lease or a break period ends only because its time is up, so use a timer for
	// that. Watch must be safe for concurrent use.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
}
