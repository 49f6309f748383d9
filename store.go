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
//  1. Choose where the record of a name is stored. Different names must have different places. To
//     keep the places different, do not fold case, shorten names or replace characters. Refuse a
//     name if [CheckName] refuses it, or if the engine cannot store it.
//  2. Write all fields of a record in one write. Use [Record.MarshalText], [Record.MarshalJSON] or
//     one column for each field. Call [Record.Validate] on every record that you read. If a record
//     cannot be read, return an error that names the key. Never treat such a record as a free lease.
//  3. Give every write a version. A name must never get the same version twice, even if an equal
//     record is written, a record is deleted and created again, or the store restarts. A hash of
//     the content is not a version, because equal contents have the same hash. A simple way to make
//     versions is one counter for the whole store, which every write and every deletion raises.
//     With a counter, a name without a record has the number of the counter as its version.
//  4. Never let an Epoch decrease. [Record.ValidateAfter] returns an error for a record with a
//     lower Epoch. If a deleted name is created again, its Epoch must be at least as high as
//     before. A simple way to remember the Epoch is one number for the whole store, the highest
//     Epoch of all deleted records.
//  5. Read the time from the clock of the database or other engine, in the same statement that
//     reads or writes the record. The time must not decrease. If the engine has no clock that can
//     be read, do not write a Store, but implement an Engine of package observe. If all clients run
//     on one machine, use the clock of that machine, and store its last reading together with the
//     data.
//  6. Make Load read the record that was committed last. Do not answer from a cache or a replica.
//  7. Make Swap compare the version and write in one atomic step. Swap must also compare the time.
//     If the Until of the record was reached after the load, Swap must return ErrConflict.
//  8. Return [ErrConflict] only if the record was certainly not written. After an error of Swap
//     that is not ErrConflict, the outcome is unknown. If a retry cannot fix an error, mark the
//     error with [Permanent]. Return soon after the context ends, even if the client library of the
//     engine does not.
//  9. Implement the optional interfaces [Watcher], [Lister] and [Limiter] if the engine allows it.
//  10. Run leasetest.TestStore. Set the fields Another, Reopen, Connect, LoseWatches, Forget,
//     Corrupt and StepClock of leasetest.StoreHooks. TestStore checks rules 1 to 9 as far as a client
//     can see them.
//     leasetest/PEERS.md lists what no rule checks.
//  11. Give the store a method named Authority, which passes the store to [NewAuthority] and returns
//     the result. Pass the result of this method to leasetest.TestAuthority. If the engine can decide
//     under a lock or in one round trip, the method can instead return a faster Authority that calls
//     [Decide].
//
// A Store must be linearizable and must keep every write that it acknowledged. If the Store is not
// linearizable or loses a write, two holders can get the same lease. The methods of a Store must be
// safe for concurrent use by several goroutines.
type Store interface {
	// Load returns the current record of the lease with the given name. If the store does not know
	// the name, Load returns a Record that is zero except for its Epoch. For an unknown name, the
	// Epoch is at least as high as the Epoch of every record that the store has forgotten, under any
	// name: the store then needs to keep only one number.
	//
	// A store may forget a record that is Available. A store may also forget a record that has been
	// in state Expired or Broken for a certain time. The documentation of the store must state how
	// long the store keeps an Expired or Broken record.
	Load(ctx context.Context, name string) (Snapshot, error)

	// Swap replaces the record of the given name with a new record (next), and returns the new
	// Snapshot. The caller has computed the new record from old.
	//
	// Swap replaces the record only if its version is still old.Version. If the version has
	// changed, Swap returns [ErrConflict]. A store with a clock also returns ErrConflict if its
	// clock has reached old.Record.Until since the time old.Now. At the time old.Record.Until, the
	// state in old.Record ends, so the new record is out of date.
	//
	// ErrConflict means that the new record was certainly not written. Together with ErrConflict,
	// Swap returns the current Snapshot or the zero Snapshot. Swap returns the zero Snapshot if the
	// store could read the current record only with another request. A store may return ErrConflict
	// spuriously, but not forever.
	//
	// If Swap returns an error other than ErrConflict, the outcome is unknown. The store might have
	// written the new record, or might still write it.
	Swap(ctx context.Context, name string, old Snapshot, next Record) (Snapshot, error)
}

// A Snapshot is a record with its version and the store's time.
type Snapshot struct {
	// Record is the record as it was written. The State of the record might have ended since the
	// write. To get the record as it was at the Load or Swap, pass the field Now to [Record.At].
	Record Record

	// Version is the version that Swap compares. The Version is opaque and never empty. A name
	// never gets the same version twice. If an equal record is written again, it gets a new
	// version, even after a restart of the store. A name without a record has a version too. When a
	// record is deleted, its name gets a version that the name has never had before.
	Version string

	// Now holds the time at which the store carried out the Load or Swap. The time is from the
	// clock of the store. If the store has no clock, the time is from the clock of the process that
	// observes the store. The time Now never decreases. Now is never earlier than the time at which
	// an authority computed Record.
	Now time.Time

	// Uncertainty bounds the error of Record.Until. The lease can end before Record.Until, but at
	// most Uncertainty earlier. Uncertainty is zero if the store has a precise clock. If the store
	// has a coarse clock, Uncertainty is one tick of that clock, because the true time can be up to
	// one tick later than Now.
	//
	// If the store has no clock, each process computes Record.Until from the time at which it first
	// read this Version of the record. If the store has no clock, Record.Until is the latest time
	// at which the lease can end. Uncertainty is the difference between Record.Until and the
	// earliest time at which the lease can end.
	Uncertainty time.Duration
}

// A Watcher signals changes of leases. Watcher is an optional interface of a [Store] or an
// [Authority]. A type that wraps a Watcher must be a Watcher too. Watch must be safe for concurrent
// use by several goroutines.
type Watcher interface {
	// Watch returns a channel with a capacity of 1. After Watch has returned, the channel receives a
	// signal after every change that
	//
	//   - unlocks the lease,
	//   - makes the lease Breaking,
	//   - moves the end of the lease to an earlier time, or
	//   - gives a locked lease to another ID or owner.
	//
	// One signal may stand for several changes. A signal may also be sent after other changes, such
	// as a renewal or the grant of a lease that was unlocked. No signal is sent before a Load can
	// return the changed record. The documentation of a Store must state how soon after a change the
	// signal is sent. The documentation must also state how long the signal can be delayed if a
	// process crashes.
	//
	// The channel is closed when ctx ends or when the watch is lost. If the watch is lost, call Watch
	// again and then read the record, because signals may have been missed.
	//
	// If a lease or a break period ends only because its time is up, Watch sends no signal. To
	// notice that a lease or a break period has ended by itself, use a timer.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
}
