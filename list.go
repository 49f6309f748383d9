package lease

import (
	"context"
	"iter"
	"time"
)

// A Lister lists leases. Lister is an optional interface of a [Store] or an [Authority]. An
// operator uses a Lister to find out which leases exist and who holds them. A type that wraps a
// Lister must be a Lister too. List must be safe for concurrent use by several goroutines.
type Lister interface {
	// List returns the leases whose names begin with prefix, in any order. The empty prefix selects
	// all leases. If the prefix is not empty and [CheckName] returns an error for it, the iteration
	// ends with that error.
	//
	// The list contains every lease that is Leased or Breaking throughout the iteration. The list
	// is allowed to contain other leases that the store remembers, such as Expired leases. The list
	// contains each name at most once.
	//
	// Each [Entry] was correct at some moment during the iteration. Two entries can be from
	// different moments, because leases can change during the iteration. The body of a loop over
	// the list is allowed to call the Store or the Authority.
	//
	// If an error comes with an Entry that has a Name, the error is only about the lease with that
	// name. For example, the record of the lease can be corrupt. If an Entry with a Name comes with
	// an error, the fields of the Entry besides the Name are zero, and the iteration continues.
	//
	// If an error comes with an Entry that has no Name, the iteration ends, and the list is
	// incomplete. If ctx is done before the list is complete, the iteration ends with an error and an
	// Entry that has no Name.
	//
	// Each iteration over the returned sequence makes a new list. List does not call the store before
	// an iteration begins.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
}

// An Entry is one lease in a list.
type Entry struct {
	// Name is the name of the lease. If the list ends with an error, the Entry that comes with this
	// error has no Name.
	Name string

	// Record is the record of the lease. Record.State is the state at the time in the field Now (see
	// [Record.At]). Treat Record as a secret, because any program that knows the lease ID in Record
	// can act as the holder.
	Record Record

	// Now holds a time on the clock of the store. If the store has no clock, the time is from the
	// clock of the process that lists the leases.
	Now time.Time
}

// A listing is the Lister of an authority. If a lease has more time left than the limits allow, the
// listing shortens the time left.
type listing struct {
	Lister
	limits Limits
}

// List implements [Lister].
func (l listing) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range l.Lister.List(ctx, prefix) {
			e.Record.pass(e.Now)
			l.limits.clamp(&e.Record, e.Now)
			if !yield(e, err) {
				return
			}
		}
	}
}
