package lease

import (
	"context"
	"time"
)

// A Store keeps records under names and replaces them atomically. It decides nothing about leases:
// [NewAuthority] makes an [Authority] of it.
//
// To write a Store:
//
//  1. Choose where the record of a name is kept. Different names must have different places: do
//     not fold case, shorten names or replace characters. Refuse a name that [CheckName] refuses,
//     and one that the engine cannot keep.
//  2. Write the record as a whole, with [Record.MarshalText], [Record.MarshalJSON] or in columns.
//     When reading it, call [Record.Validate]. A record that cannot be read is an error that names
//     the key, and never a free lease.
//  3. Give every write a version that never recurs for the name: not when the same record is written
//     again, not when the record is deleted and made again, and not after a restart. A hash of the
//     content recurs.
//  4. Never let an Epoch fall. A name that was deleted must come back with an Epoch that is not below
//     the one that it had. A simple way is one number for the whole store, the highest Epoch of any
//     record that was deleted.
//  5. Take the time from the engine, in the statement that reads or writes. It must not decrease. If
//     the engine has no clock that can be asked, do not write a Store: write an Engine of package
//     observe.
//  6. Let Load read what was last committed. Do not answer from a cache or a replica.
//  7. Let Swap compare the version and write in one atomic step. It must also compare the time: a
//     record that has come to its Until since it was loaded is a conflict.
//  8. Return [ErrConflict] only if the record was certainly not written. After any other error from
//     Swap the outcome is unknown. Mark an error that no retry can mend with [Permanent]. Return
//     soon after the context ends, whatever the engine's client does.
//  9. Add the optional abilities [Watcher], [Lister] and [Limiter] where the engine allows.
//  10. Run leasetest.TestStore, which checks all of this, a rule a subtest.
//  11. Add a method Authority that returns NewAuthority of the store, and pass that to
//     leasetest.TestAuthority. If the engine can decide under a lock, or in one exchange, replace it
//     by a faster one that calls [Decide].
//
// A Store must be linearizable and must keep what it acknowledged. Otherwise the promise of the
// authority does not hold. Its methods must be safe for use by several goroutines at once.
type Store interface {
	// Load returns the record under a name as it is now. If the store does not know the name,
	// Load returns a Record that is zero except for its Epoch. That Epoch is not below any Epoch
	// that the store granted under a name that it has forgotten.
	//
	// A store may forget a record that is Available, and a record that has been Expired or Broken
	// for longer than a time that the store documents.
	Load(ctx context.Context, name string) (Snapshot, error)

	// Swap replaces the record that old shows by next, and returns the Snapshot as committed.
	//
	// It fails with [ErrConflict] if the version of the record is no longer old.Version. In a
	// store with a clock it also fails with ErrConflict if the record has come to its Until since
	// old.Now, because next was decided on a state that is over.
	//
	// ErrConflict means that next was certainly not written. The Snapshot beside it is the current
	// one, if the store got that at no extra cost, and zero otherwise. A store may return
	// ErrConflict spuriously, but not forever.
	//
	// After any other error it is unknown whether next was written, or will be.
	Swap(ctx context.Context, name string, old Snapshot, next Record) (Snapshot, error)
}

// A Snapshot is a record with its version and the store's time.
type Snapshot struct {
	// Record is the record as it was written. Its State may be over at Now: see [Record.At].
	Record Record

	// Version is the version that Swap compares. It is opaque and never empty. It never recurs
	// for a name: not for an equal record, not for the absence of a record before and after, and
	// not after a restart of the store.
	Version string

	// Now is the store's time at the Load or Swap, or the time of an observer if the store has no
	// clock. It never decreases. It is never earlier than the Now on which the record was decided.
	Now time.Time

	// Uncertainty is how much earlier than Until the lease may end. It is zero in a store whose
	// clock is precise. In a store with a coarse clock it is the tick of that clock, because Now
	// is up to a tick old. In a store without a clock, Until is an upper bound that an observer
	// counts from when it first saw the version, and Uncertainty is the distance to the lower
	// bound.
	Uncertainty time.Duration
}

// A Watcher is an optional ability of a [Store] or an [Authority]. Every wrapper of a Store or an
// Authority passes it on.
type Watcher interface {
	// Watch returns a channel of capacity 1. It gets a signal after every change since Watch
	// returned that unlocks the record, makes it breaking, shortens its end, or gives a lock to
	// another ID or owner. The signals of several changes may share one. A grant of an unlocked
	// lease and a later Until need not be signalled, but may be. A change is signalled once it can
	// be loaded, and soon: a Store documents how soon, and what bounds it if a process crashes.
	//
	// The channel is closed when ctx ends, and when the watch is lost. Then call Watch again, and
	// look at the record, because changes may have been missed.
	//
	// The passing of time is no change and sends no signal. To notice the end of a lease, set a
	// timer.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
}
