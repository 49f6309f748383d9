package pglease

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// maxExactMicros is the longest duration, in microseconds, that the server can multiply without rounding.
const maxExactMicros = 1 << 53

// renew replaces old.Record with the record next. The two records differ only in Until, and the server
// computes the new Until from its own clock. renew returns [lease.ErrConflict] if the lease has ended, if
// another transaction has locked the row, or if the row differs from old.Record in more than its end. renew
// also returns ErrConflict if the SQL statement would have to round old.Record.Until or next.Duration.
func (s *rows) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	micros := next.Duration.Microseconds()
	if engine.NewRow(old.Record).Nanos != 0 || micros > maxExactMicros || time.Duration(micros)*time.Microsecond != next.Duration {
		return lease.Snapshot{}, lease.ErrConflict
	}
	var r renewed
	err := s.gate.Swap(name, old.Record, next, func(engine.Request) (err error) {
		r, err = s.renewals.Do(ctx, name, renewal{name, next.ID.String(), next.Epoch, next.Owner, next.Duration.String(), micros})
		if err == nil && r.at.IsZero() {
			return lease.ErrConflict
		}
		return conflictOr(err)
	})
	if errors.Is(err, lease.ErrUnsent) {
		err = &busyError{size: s.size, renewal: true, err: err}
	}
	if err != nil {
		return lease.Snapshot{}, describeError("renew", name, err)
	}
	now := r.at.UTC()
	next.Until = now.Add(next.Duration)
	return lease.Snapshot{Record: next, Version: strconv.FormatInt(r.version, 10), Now: now}, nil
}
