package engine

import (
	"context"
	"iter"
	"strings"

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

// Listed is a lease of a page: see [ListPages].
type Listed struct {
	lease.Entry
	Err error // why the lease cannot be read; its Entry then has only a Name
}

// ListPages is like [List], for a server that returns its leases page by page, in the order of their names.
// The function read returns the first leases whose names are greater than after, but not less than the prefix.
// A page with fewer leases than most is the last one.
func ListPages(ctx context.Context, prefix string, most int, read func(after string) ([]Listed, error)) iter.Seq2[lease.Entry, error] {
	return List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		for after := ""; ; {
			page, err := read(after)
			if err != nil {
				return err
			}
			for _, l := range page {
				after = l.Name
				if !strings.HasPrefix(after, prefix) || !yield(l.Entry, l.Err) {
					return nil
				}
			}
			if len(page) < most {
				return nil
			}
		}
	})
}

// ListEntry returns the entry that represents a loaded record in a list.
func ListEntry(name string, snap lease.Snapshot) lease.Entry {
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}
}
