package leasefault

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// list is the list of a wrapper that changes what a load shows: the names come from inner, and
// each entry is what the wrapper's own load shows under the name. An inner store that is no
// Lister has no list, and its wrapper does not pass one on.
func list(ctx context.Context, wrapper, inner lease.Store, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range inner.(lease.Lister).List(ctx, prefix) {
			if err == nil {
				var snap lease.Snapshot
				if snap, err = wrapper.Load(ctx, e.Name); err != nil {
					snap = lease.Snapshot{} // an error stands beside a name and nothing else
				}
				e.Record, e.Now = snap.Record.At(snap.Now), snap.Now
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
