package lease

import (
	"context"
	"time"
)

// A Store keeps one record for each name and replaces records atomically. A Store makes no decisions
// about leases. [NewAuthority] makes an [Authority] from a Store, and the Authority makes the
// decisions.
//
// To write a Store:
//
//  1. Choose where the record of a name is stored. Different names must have different places.
//     Therefore do not fold case, shorten names or replace characters. Refuse a name if [CheckName]
//     refuses it, or if the engine cannot store it.
//  2. Write all fields of a record in one write. Use [Record.MarshalText], [Record.MarshalJSON] or
//     one column for each field. Call [Record.Validate] on every record that you read. If a record
//     cannot be read, return an error that names the key. Never treat such a record as a free lease.
//  3. Give every write a version. A name must never get the same version twice. This includes a write
//     of an equal record, a record that is deleted and created again, and a restart. A hash of the
//     content is not a version, because equal contents have the same hash.
//  4. Never let an Epoch decrease. If a deleted name is created again, its Epoch must be at least as
//     high as before. A simple way is to store one number for the whole store, which is the highest
//     Epoch of all deleted records.
//  5. Read the time from the engine's clock, in the same statement that reads or writes the record.
//     The time must not decrease. If the engine has no clock that can be read, do not write a Store.
//     Implement an Engine of package observe instead.
//  6. Make Load read the record that was committed last. Do not answer from a cache or a replica.
//  7. Make Swap compare the version and write in one atomic step. It must also compare the time. If a
//     record has reached its Until since it was loaded, Swap must return a conflict.
//  8. Return [ErrConflict] only if the record was certainly not written. After any other error from
//     Swap, the outcome is unknown. If a retry cannot fix an error, mark the error with [Permanent].
//     Return soon after the context ends, even if the client library of the engine does not.
//  9. Implement the optional interfaces [Watcher], [Lister] and [Limiter] if the engine allows it.
//  10. Run leasetest.TestStore. It checks all of these rules, each in its own subtest.
//  11. Add a method Authority that passes the store to [NewAuthority] and returns the result. Pass its
//     result to leasetest.TestAuthority. If the engine can decide under a lock or in one round trip,
//     a faster Authority that calls [Decide] can replace it.
//
// A Store must be linearizable and must keep every write that it acknowledged. Otherwise two holders
// may get the same lease. The methods of a Store must be safe for concurrent use by several
// goroutines.
type Store interface {
	// Load returns the current record of the lease with the given name. If the store does not know
	// the name, Load returns a Record that is zero except for its Epoch. The Epoch of an unknown name
	// is at least as high as the Epoch of every record that the store has forgotten.
	//
	// A store may forget a record that is Available. A store may also forget a record that has been
	// Expired or Broken for a certain time. The documentation of the store must state that time.
	Load(ctx context.Context, name string) (Snapshot, error)

	// Swap replaces the record in old with next, and returns the committed Snapshot.
	//
	// Swap returns [ErrConflict] if the version of the record is no longer old.Version. If the Until
	// of the record has passed since old.Now, a store with a clock also returns ErrConflict, because
	// next was computed from a state that has ended.
	//
	// ErrConflict means that next was certainly not written. Together with ErrConflict, Swap returns
	// the current Snapshot if the store got it without an extra request. Otherwise it returns the
	// zero Snapshot. A store may return ErrConflict spuriously, but not forever.
	//
	// After an error other than ErrConflict, next may have been written, or may still be written
	// later.
	Swap(ctx context.Context, name string, old Snapshot, next Record) (Snapshot, error)
}

// A Snapshot is a record with its version and the store's time.
type Snapshot struct {
	// Record is the record as it was written. Its State may have ended before Now. Use [Record.At] to
	// get the record at the time Now.
	Record Record

	// Version is the version that Swap compares. It is opaque and never empty. A name never gets the
	// same version twice. An equal record that is written again has a new version, even after a
	// restart of the store. A name without a record has a version too. After its record is deleted, a
	// name gets a version that was never used before.
	Version string

	// Now is the store's time of the Load or Swap. If the store has no clock, Now is the time of the
	// process that observes the store. Now never decreases, and is never earlier than the time at
	// which the record was computed.
	Now time.Time

	// Uncertainty is how much earlier than Until the lease may end. It is zero if the store has a
	// precise clock. If the clock is coarse, Uncertainty is one tick of the clock, because Now may be
	// up to one tick old.
	//
	// If the store has no clock, each process counts Until from the time at which it first read the
	// version. Such an Until is an upper bound, and Uncertainty is the difference between Until and a
	// lower bound of the end.
	Uncertainty time.Duration
}

// A Watcher signals changes of leases. It is an optional interface of a [Store] or an [Authority]. A
// type that wraps a Watcher must be a Watcher too.
type Watcher interface {
	// Watch returns a channel with a capacity of 1. After Watch has returned, the channel receives a
	// signal after every change that
	//
	//   - unlocks the lease,
	//   - makes the lease Breaking,
	//   - moves the end of the lease to an earlier time, or
	//   - gives a locked lease to another ID or owner.
	//
	// One signal may stand for several changes. Other changes may send a signal too, for example a
	// renewal or the grant of an unlocked lease. The signal is sent only after a Load can return the
	// change. The documentation of a Store must state how soon after a change the signal is sent. The
	// documentation must also state how long the signal can be delayed if a process crashes.
	//
	// The channel is closed when ctx ends or when the watch is lost. If the watch is lost, call Watch
	// again and then read the record, because signals may have been missed.
	//
	// No signal is sent when a lease or a break period ends only because its time is up. To notice
	// such an end, use a timer.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
}
