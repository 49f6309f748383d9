package engine

import (
	"time"

	"github.com/fencedlease/lease"
)

// NeedsSignal compares the record of a lease before and after a change, and reports whether the watches of
// the lease need a signal. See SPEC S7.
func NeedsSignal(old, next lease.Record) bool {
	switch {
	case next.State == lease.Breaking && old.State != lease.Breaking:
		return true
	case !old.State.Locked():
		return false
	case !next.State.Locked(), next.ID != old.ID, next.Owner != old.Owner:
		return true
	}
	return endsEarlier(next.Until, old.Until)
}

// endsEarlier reports whether the end a of a lease is before b. The zero time stands for no end.
func endsEarlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}
