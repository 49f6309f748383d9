package lease

import (
	"context"
	"time"
)

// A Store keeps records under names and swaps them atomically. It decides nothing about
// leases: [NewAuthority] makes an [Authority] of it, through [Step].
//
// A Store must be linearizable and must keep what it acknowledged, or the promise of the
// authority is void. Its methods may be called from any number of goroutines. It maps names
// injectively and never shortens one; a name that it cannot keep, and one that [CheckName]
// refuses, is an error. (NewAuthority asks a Store for no such name, but others may.) A
// record that cannot be read, or that [Record.Validate] refuses, is an error that names the key: it
// is never taken for a free lease.
//
// leasetest.TestStore holds a Store to all this, a rule at a time.
//
// Optional abilities are [Watcher], [Lister] and [Limiter].
type Store interface {
	// Load returns the record under a name as it is now; it is never a stale one. A name that
	// the store does not know gives a Record that is zero but for an Epoch no lower than any
	// that this store ever granted under a name it forgot.
	//
	// A store may forget a record that is Available, and one that has been Expired or Broken
	// for longer than a time it states.
	Load(ctx context.Context, name string) (Snapshot, error)

	// Swap puts next in the place of the record that old shows, and returns the Snapshot as
	// committed. It fails with [ErrConflict] if the version is no longer old's, or, in a
	// store with a clock of its own, if the record has come to its Until since old was
	// loaded: then next was decided on a state that is over. ErrConflict means that next was
	// certainly not applied; the current Snapshot comes with it if it came for free, and
	// otherwise a zero one. It may be given without need, if not for ever. After any other
	// error it is unknown whether next is, or will be, applied.
	Swap(ctx context.Context, name string, old Snapshot, next Record) (Snapshot, error)
}

// A Snapshot is a record with the version that Swap compares, and the time of the store.
type Snapshot struct {
	Record Record

	// Version is opaque and never empty. It never recurs for a name: not for the same
	// record, nor for its absence before and after, nor over a restart of the store.
	Version string

	// Now is the store's time at the Load or Swap, or, where a store has no clock, that of
	// whoever observes it. It never decreases, and is never earlier than the Now on which
	// the record was decided.
	Now time.Time

	// Uncertainty is how much earlier than Until shows the lease may end. In a store with a clock it
	// is zero, or the tick of a clock that is coarser than the margin of a holder: Now is up to a
	// tick old. Where an observer counts the time since it first saw a version, Until is a bound
	// from above.
	Uncertainty time.Duration
}

// A Watcher is an optional ability of a [Store] or an [Authority]. Every wrapper of either
// passes it on.
type Watcher interface {
	// Watch returns a channel of capacity 1. It gets a signal after every change since Watch
	// returned that unlocks the record, makes it breaking, shortens its end, or gives a lock to
	// another ID or owner. The signals of several changes may share one. A grant of an unlocked
	// lease and a later Until need not be signalled, but may be. A change is signalled once it can
	// be loaded, and soon: a Store documents how soon, and what bounds it if a process crashes.
	//
	// The channel is closed when the watch is lost, and once the context is done. The passing of
	// time changes no record and sends nothing, so set a timer as well, and look again when it
	// fires.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
}
