package engine

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// List returns what a [lease.Lister] or a [Backend] returns from its method List, with the given prefix. It calls list,
// which reads the leases, for example page by page, and yields each of them. An error that belongs to one lease is
// yielded with it. An error that ends the list is returned, and List yields it last. When yield returns false, list
// must return, and whatever it then returns is ignored.
//
// List yields an error instead of calling list if [lease.CheckName] refuses the prefix, or if ctx is done, and also
// if ctx is done at the end of a list, which may then be incomplete.
func List[E any](ctx context.Context, prefix string, list func(yield func(E, error) bool) error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		stopped := false
		err := ctx.Err()
		if prefix != "" && err == nil {
			err = lease.CheckName(prefix)
		}
		if err == nil {
			if err = list(func(e E, err error) bool {
				stopped = stopped || !yield(e, err)
				return !stopped
			}); err == nil {
				err = ctx.Err()
			}
		}
		if err != nil && !stopped {
			yield(*new(E), err)
		}
	}
}

// ListEntry returns the entry of a list for a record that was loaded.
func ListEntry(name string, snap lease.Snapshot) lease.Entry {
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}
}
