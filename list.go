package lease

import (
	"context"
	"iter"
	"time"
)

// A Lister lists leases, so that an operator can find out which leases exist and who holds them. Lister is an
// optional interface of a [Store] or an [Authority]. A type that wraps a Lister must be a Lister, too.
type Lister interface {
	// List returns the leases whose names begin with prefix, in any order. The empty prefix selects all
	// leases. If [CheckName] returns an error for a prefix that is not empty, the iteration ends with that
	// error. List must be safe for concurrent use.
	//
	// The list contains every lease that is Leased or Breaking throughout the iteration. It may contain other
	// leases that the store still has a record of, such as Expired leases. No name occurs twice in the list.
	//
	// Each [Entry] was correct at some moment during the iteration. Two entries can be from different
	// moments. The body of a loop over the list may call the Store or the Authority.
	//
	// If an error comes with an Entry that has a Name, the error concerns only the lease with that Name. For
	// example, the record of this lease can be corrupt. The other fields of the Entry are zero, and the
	// iteration continues.
	//
	// If an error comes with an Entry without a Name, the iteration ends, and the list is incomplete. For
	// example, this happens if ctx is done before the list is complete.
	//
	// Each iteration over the returned sequence makes a new list. List does not call the store before an
	// iteration begins.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
}

// An Entry is one lease in the result of [Lister.List].
type Entry struct {
	// Name is the name of the lease. Name is empty if the Entry comes with an error that ends the list.
	Name string

	// Record is the record of the lease. Record.State is the state at the time in the field Now (see
	// [Record.At]). Treat Record as a secret, because any program that knows its lease ID can act as the
	// holder.
	Record Record

	// The field Now is a time on the clock of the store. If the store has no clock, the field Now is a time
	// on the clock of the process that lists the leases.
	Now time.Time
}

// A listing wraps the Lister of an authority. The listing applies the Limits of the authority to the leases
// that the Lister yields.
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
