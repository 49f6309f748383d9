package pglease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// putSQL is the SQL with which [Store.Swap] replaces an existing row. The statement sets the version itself,
// so that no trigger runs. The statement reads the clock once, after it has locked the row, and changes the
// row only before the deadline $10, which is the end of the lease. A deadline of null means that the lease has
// ended or never ends. If the lease has ended, and the clock was set back to a time before the end of the lease,
// the statement uses the end of the lease as the time of the change. The statement returns the time of the
// change.
const putSQL = `
with old as materialized (
	select l.name, l.changed, l.until from {row} l where l.name = $1 and l.version = $2 for update
), at as materialized (
	select old.name, greatest(clock_timestamp(), old.changed, case when $10::timestamptz is null then old.until end) as now
	from old
)
update {row} l set state = $3, epoch = $4, id = nullif($5, '')::uuid, owner = $6, duration = $7, until = $8, nanos = $9, changed = at.now,
	version = l.version + 1,
	signalled = case when $11 then at.now else l.signalled end from at
where l.name = at.name and ($10::timestamptz is null or at.now < $10::timestamptz)
returning json_build_array(l.version, (extract(epoch from l.changed) * 1000000)::bigint)::text`

// putNewSQL inserts the first row of a lease. While a lease has no row, its version is the version in
// lease_floor, which increases when any row is deleted. The statement locks lease_floor, so that no row can
// be deleted meanwhile.
const putNewSQL = `
insert into {row} (name, state, epoch, id, owner, duration, until, nanos)
select $1, $3::text, $4::bigint, nullif($5, '')::uuid, $6::text, $7::text, $8::timestamptz, $9::smallint
from {floor} f where f.version = $2 for share
on conflict (name) do nothing
returning json_build_array(version, (extract(epoch from changed) * 1000000)::bigint)::text`

// Swap replaces the record only if its version is still old.Version. If the record has changed, or if the
// lease has ended since old.Now, Swap returns [lease.ErrConflict]. For a grant, Swap raises the Epoch of the
// new record above [Options.Floor].
func (s *rows) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := engine.CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch > old.Record.Epoch { // a grant
		next.Epoch = max(next.Epoch, s.floor+1)
	}
	version, absent, err := engine.ParseVersion(old.Version)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("pglease: version %q is not of this store", old.Version)
	}
	r := engine.NewRow(next)
	query, args := s.sql.putNew, []any{name, version, r.State, r.Epoch, r.ID, r.Owner, durationColumn(next.Duration), endColumn(r), r.Nanos}
	signal := engine.NeedsSignal(old.Record.At(old.Now), next)
	if !absent {
		var deadline *time.Time
		if old.Now.Before(old.Record.Until) {
			deadline = endColumn(engine.NewRow(old.Record))
		}
		query, args = s.sql.put, append(args, deadline, signal)
	}
	var answer [2]int64 // the version, and the time in microseconds
	if err := s.gate.Swap(name, old.Record, next, func(r engine.Request) error {
		return conflictOr(s.query(ctx, r, statement{sql: query, args: args, answer: &answer}))
	}); err != nil {
		return lease.Snapshot{}, describeError("swap", name, err)
	}
	now := time.UnixMicro(answer[1]).UTC()
	if signal {
		s.notify(ctx, name, now)
	}
	return lease.Snapshot{Record: next, Version: strconv.FormatInt(answer[0], 10), Now: now}, nil
}

// conflictOr returns [lease.ErrConflict] if err means that a write was certainly not applied, because of
// another transaction or because the lease has ended. Otherwise conflictOr returns err.
func conflictOr(err error) error {
	switch state := sqlState(err); {
	case errors.Is(err, sql.ErrNoRows), state == serializationFailure, state == deadlockDetected:
		return lease.ErrConflict
	}
	return err
}
