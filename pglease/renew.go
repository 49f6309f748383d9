package pglease

import (
	"context"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// renew is the renewal of a lease that is to be as it was when its version was made, in one
// exchange. The until is counted from the server's time of the statement.
//
// That time is read before the row is locked. So what is returned looks at the clock once
// more, under the lock: if the lease is over by then, or the time was read too long before,
// because somebody kept the row locked, a text that is no time takes the statement back. Whoever
// finds a lease over does so under a lock of the row, too, and comes either before this
// statement, which then fails, or after it. To read the time under the lock, as [put] does,
// would take the server a third longer.
//
// It makes the version itself, and sets none of the columns for which the trigger runs. Where
// the until was changed by hand, past the view, it is not the one that is remembered.
const renew = `
update {row} l set
	until = greatest(statement_timestamp(), l.changed) + $3::bigint * interval '1 microsecond',
	changed = greatest(statement_timestamp(), l.changed),
	version = l.version + 1
where l.name = $1 and l.version = $2 and l.until = $4 and greatest(statement_timestamp(), l.changed) < l.until
returning case when clock_timestamp() < least($4, statement_timestamp() + interval '5 ms') then l.changed
	else ('lease ' || l.name || ': the row was locked for too long, the renewal is begun anew')::timestamptz end`

// longest is the longest duration in microseconds that the server multiplies exactly.
const longest = 1 << 53

// renew commits next, which differs from the record of old only in an until that is to be
// counted from the time of the commit. What the statement cannot do is a conflict.
func (s *rows) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	version, err := strconv.ParseInt(old.Version, 10, 64)
	end, nanos := whole(old.Record.Until)
	micros := next.Duration.Microseconds()
	if err != nil || nanos != 0 || micros > longest || time.Duration(micros)*time.Microsecond != next.Duration {
		return lease.Snapshot{}, lease.ErrConflict
	}
	renewed := func(now time.Time) lease.Snapshot {
		now = now.UTC()
		next.Until = now.Add(next.Duration)
		return lease.Snapshot{Record: next, Version: strconv.FormatInt(version+1, 10), Now: now}
	}
	now, err := s.renewals.do(ctx, renewal{name, version, micros, end}, func(now time.Time) {
		s.memory.note(name, renewed(now), nil)
	})
	if sqlState(err) == noTime {
		return lease.Snapshot{}, lease.ErrConflict
	}
	if err != nil {
		return lease.Snapshot{}, refused("renew", name, err)
	}
	return renewed(now), nil
}

// renewOne makes one renewal and returns its time.
func (s *rows) renewOne(ctx context.Context, r renewal) (now time.Time, err error) {
	err = s.ask(urgently(ctx), s.sql.renew, []any{r.Name, r.Version, r.Micros, r.Until}, []any{&now})
	return now, err
}
