package pglease

import (
	"context"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// renewSQL is the SQL that renews a lease in one exchange. The statement changes the row only if
// the columns "version" and "until" have the expected values. The server counts the new "until"
// from its own time.
//
// The statement reads the time before it locks the row, so the returning clause reads the clock
// again under the lock. The renewal must fail if the lease has expired when the row is locked. The
// renewal must also fail if it has waited for the lock for more than 5 ms. To make the renewal
// fail, the returning clause casts an invalid text to a time. The cast fails, and the server undoes
// the statement. A load that finds a lease expired also locks the row, so a renewal at the same
// time either commits before the load or fails. If the statement read the time only under the lock,
// as [putSQL] does, it would take the server a third longer.
//
// The trigger does not run for the columns that this statement sets, so the statement sets the
// version itself. The statement compares "until" with its expected value, because a direct change
// of "until" in lease_row makes no new version.
const renewSQL = `
update {row} l set
	until = greatest(statement_timestamp(), l.changed) + $3::bigint * interval '1 microsecond',
	changed = greatest(statement_timestamp(), l.changed),
	version = l.version + 1
where l.name = $1 and l.version = $2 and l.until = $4 and greatest(statement_timestamp(), l.changed) < l.until
returning case when clock_timestamp() < least($4, statement_timestamp() + interval '5 ms') then l.changed
	else ('lease ' || l.name || ': the row was locked for too long, the renewal is begun anew')::timestamptz end`

// maxExactMicros is the longest duration, in microseconds, that the server can multiply without
// rounding.
const maxExactMicros = 1 << 53

// renew replaces old.Record by the record next, which differs only in Until. The server counts the
// new Until from its own time. It returns [lease.ErrConflict] if the row has changed, or if one
// statement cannot renew this lease.
func (s *rows) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	version, err := strconv.ParseInt(old.Version, 10, 64)
	end, nanos := roundUp(old.Record.Until)
	micros := next.Duration.Microseconds()
	if err != nil || nanos != 0 || micros > maxExactMicros || time.Duration(micros)*time.Microsecond != next.Duration {
		return lease.Snapshot{}, lease.ErrConflict
	}
	renewed := func(now time.Time) lease.Snapshot {
		now = now.UTC()
		next.Until = now.Add(next.Duration)
		return lease.Snapshot{Record: next, Version: strconv.FormatInt(version+1, 10), Now: now}
	}
	now, err := s.renewals.submit(ctx, renewal{name, version, micros, end}, func(now time.Time) {
		s.memory.note(name, renewed(now), nil)
	})
	if sqlState(err) == noTime {
		return lease.Snapshot{}, lease.ErrConflict
	}
	if err != nil {
		return lease.Snapshot{}, swapError("renew", name, err)
	}
	return renewed(now), nil
}

// renewOne sends one renewal and returns its time.
func (s *rows) renewOne(ctx context.Context, r renewal) (now time.Time, err error) {
	err = s.queryRow(urgently(ctx), s.sql.renew, []any{r.Name, r.Version, r.Micros, r.Until}, []any{&now})
	return now, err
}
