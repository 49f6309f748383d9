package leasefault

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// listLoaded implements the method List for a wrapper whose method Load changes the records of the inner
// store. The inner store lists the names, and the method Load of the wrapper returns the record and the time
// of each name. The inner store is always a [lease.Lister], because wrap.Store otherwise makes a store that
// has no method List.
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
