package lease

import (
	"context"
	"iter"
	"time"
)

// A Lister is an optional ability of a [Store] or an [Authority]. It answers the question of an
// operator: which leases are there, and who holds them? Every wrapper of a Store or an Authority
// passes it on.
type Lister interface {
	// List returns the leases whose names begin with prefix, in any order. The empty prefix
	// stands for all leases. Any other prefix must be one that [CheckName] accepts.
	//
	// A list shows every lease that stays Leased or Breaking from the beginning of the list to
	// its end, and it shows it once. It may show other leases that the store remembers. It
	// shows no name twice.
	//
	// Each [Entry] was true at some moment of the list, but not all entries at the same moment:
	// leases change while they are listed. The body of a loop over the list may call the Store
	// or the Authority.
	//
	// An error beside an Entry with a Name is an error of that lease alone, such as a corrupt
	// record. The Entry shows nothing else, and the list goes on. An error beside an Entry
	// without a Name ends the list, which is then incomplete. The list ends so if ctx is done
	// before all leases were shown.
	//
	// Each use of the returned sequence is a new list. List does not call the store before that.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
}

// An Entry is one lease in a list.
type Entry struct {
	// Name is the name of the lease. It is empty beside an error that ends the list.
	Name string

	// Record is the record as it stands at Now: [Record.At] has been applied. It has the ID of
	// the lease, and a program that knows it can act as the holder.
	Record Record

	// Now is the time of the store, or of the observer where a store has no clock.
	Now time.Time
}

// listing is the list of an authority over a store: what the list of the store shows, within the
// limits.
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
