package pglease

import (
	"context"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// maxExactMicros is the longest duration, in microseconds, that the server can multiply without rounding.
const maxExactMicros = 1 << 53

// renew replaces old.Record with next, which differs only in Until. The server computes the new Until
// from its own clock. renew returns [lease.ErrConflict] if the row has changed, if another transaction
// has locked it, if the lease has ended, if old.Version is not a number, or if the SQL statement would
// have to round old.Record.Until or next.Duration.
func (s *rows) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	version, err := strconv.ParseInt(old.Version, 10, 64)
	_, nanos := roundUp(old.Record.Until)
	micros := next.Duration.Microseconds()
	if err != nil || nanos != 0 || micros > maxExactMicros || time.Duration(micros)*time.Microsecond != next.Duration {
		return lease.Snapshot{}, lease.ErrConflict
	}
	now, err := s.renewals.submit(ctx, renewal{name, version, micros})
	if err != nil {
		return lease.Snapshot{}, swapError("renew", name, err)
	}
	now = now.UTC()
	next.Until = now.Add(next.Duration)
	return lease.Snapshot{Record: next, Version: strconv.FormatInt(version+1, 10), Now: now}, nil
}
