package leasefault

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// listLoaded implements List for a wrapper whose Load changes the records of the inner store. The names come
// from List of the inner store, and the records and times come from Load of the wrapper. If the inner store
// is not a [lease.Lister], wrap.Store hides List of the wrapper.
func listLoaded(ctx context.Context, wrapper, inner lease.Store, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range inner.(lease.Lister).List(ctx, prefix) {
			if err == nil {
				var snap lease.Snapshot
				if snap, err = wrapper.Load(ctx, e.Name); err != nil {
					snap = lease.Snapshot{} // an entry with an error has no field but Name
				}
				e.Record, e.Now = snap.Record.At(snap.Now), snap.Now
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
