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
// The statement reads the time before it locks the row. After the row has been locked, the clause
// "returning" reads the clock again. The renewal must fail if the lease expires before the row is
// locked. The renewal must also fail if it has waited for the lock for more than 5 ms. To make the
// renewal fail, the clause "returning" casts an invalid text to a time. The cast fails, and the
// server undoes the statement. If [Store.Load] finds that a lease has expired, Load locks the row.
// A renewal that runs at the same time as such a Load either commits before the Load or fails.
// Unlike renewSQL, [putSQL] first locks the row, and then reads the time once. If renewSQL locked
// the row first, the server would need 33% more time for a renewal.
//
// The statement makes the version itself, so that no trigger runs. In tables of version 2, an operator
// can change "until" in lease_row without a new version. The statement therefore also compares "until"
// with its expected value.
const renewSQL = `
update {row} l set
	until = greatest(statement_timestamp(), l.changed) + $3::bigint * interval '1 microsecond',
	changed = greatest(statement_timestamp(), l.changed),
	version = l.version + 1
where l.name = $1 and l.version = $2 and l.until = $4 and greatest(statement_timestamp(), l.changed) < l.until
returning case when clock_timestamp() < least($4, statement_timestamp() + interval '5 ms') then l.changed
	else ('lease ' || l.name || ': the row was locked for too long, the renewal is sent again')::timestamptz end`

// maxExactMicros is the longest duration, in microseconds, that the server can multiply without
// rounding.
const maxExactMicros = 1 << 53

// renew replaces old.Record with the new record (next). The two records differ only in Until. The
// server computes the new Until from its own clock. renew returns [lease.ErrConflict] if the row has
// changed, if another transaction keeps the row locked, or if the lease has ended. renew also returns
// [lease.ErrConflict] if old.Version is not a number, or if the SQL statement would have to round
// old.Record.Until or next.Duration.
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
		s.memory.Note(name, renewed(now), nil)
	})
	if sqlState(err) == invalidDatetimeFormat {
		return lease.Snapshot{}, lease.ErrConflict
	}
	if err != nil {
		return lease.Snapshot{}, swapError("renew", name, err)
	}
	return renewed(now), nil
}

// renewOne sends one renewal, and returns the time at which the server renewed the lease.
func (s *rows) renewOne(ctx context.Context, r renewal) (now time.Time, err error) {
	err = s.write(urgently(ctx), s.sql.renew, []any{r.Name, r.Version, r.Micros, r.Until}, []any{&now})
	return now, err
}
