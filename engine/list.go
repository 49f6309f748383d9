package engine

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
)

// List helps to implement the method List of a [lease.Lister] or a [Backend]: that method can return the
// sequence that this function returns. The caller's function reads the leases, for example page by page, and
// yields each of them. If one lease cannot be read, the function yields it with the error. If the function
// cannot read the rest, it returns an error, which List yields last. When yield returns false, the function
// must return, and List ignores its result.
//
// If [lease.CheckName] rejects the prefix, or if ctx is done, List yields only the error, and does not call
// the function. If ctx is done at the end, its error is yielded last, because the list may then be
// incomplete.
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

// ListEntry returns the entry that represents a loaded record in a list.
func ListEntry(name string, snap lease.Snapshot) lease.Entry {
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}
}
