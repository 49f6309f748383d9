package engine

import (
	"time"

	"github.com/fencedlease/lease"
)

// NeedsSignal reports whether a store must signal the watches of a lease after a change of its record. The
// parameters are the records before and after the change. A signal is needed if the holder or a waiting
// process can act on the change. This is the case if the change has released the lease, has begun to break
// it, has moved its end to an earlier time, or has given the lease to another holder. A renewal needs no
// signal. See SPEC S7.
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

// endsEarlier reports whether a is before b. The zero time means that a lease does not end by itself.
func endsEarlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}
