package pglease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// put is the swap of a row. It says its own time in changed, so that the trigger does not notify:
// see [notify]. The time is read once the row is locked, and once: it is the one
// that the until, if there is one to come, is compared with, and that of the swap.
const put = `
with old as materialized (
	select l.name, l.changed from {row} l where l.name = $1 and l.version = $2 for update
), at as materialized (
	select old.name, greatest(clock_timestamp(), old.changed) as now from old
)
update {row} l set state = $3, epoch = $4, id = $5, owner = $6, duration = $7, until = $8, nanos = $9, changed = at.now,
	signalled = case when $11 then at.now else l.signalled end from at
where l.name = at.name and ($10::timestamptz is null or at.now < $10::timestamptz)
returning l.version, l.changed`

// putNew is the swap of a name that had no row. The lock of the floor keeps rows from being
// deleted, and with it the version of the absence the same, until the insert has committed.
const putNew = `
insert into {row} (name, state, epoch, id, owner, duration, until, nanos)
select $1, $3::text, $4::bigint, $5::uuid, $6::text, $7::text, $8::timestamptz, $9::smallint
from {floor} f where f.version = $2 for share
on conflict (name) do nothing
returning version, changed`

// Swap puts next in the place of the record that old shows, if the row has not changed and has
// not come to its until since.
func (s *rows) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch < old.Record.Epoch {
		return lease.Snapshot{}, &lease.FieldError{Field: "Record.Epoch", Value: strconv.FormatUint(next.Epoch, 10),
			Bound: fmt.Sprintf("must not fall below %d", old.Record.Epoch), Code: lease.ErrCorrupt}
	}
	if err := next.Validate(); err != nil {
		return lease.Snapshot{}, err
	}
	digits, wasAbsent := strings.CutPrefix(old.Version, absent)
	version, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("pglease: version %q is not of this store", old.Version)
	}
	query, args := s.sql.putNew, append([]any{name, version}, values(next)...)
	signal := mustSignal(old.Record.At(old.Now), next)
	if !wasAbsent {
		query, args = s.sql.put, append(args, ahead(old), signal)
	}
	var now time.Time
	if err := s.ask(ctx, query, args, []any{&version, &now}); err != nil {
		return lease.Snapshot{}, refused("swap", name, err)
	}
	if signal {
		s.notifier.notify(ctx, name, now)
	}
	return lease.Snapshot{Record: next, Version: strconv.FormatInt(version, 10), Now: now.UTC()}, nil
}

// ahead is the end that the row must not have come to, nil if there is none ahead.
func ahead(old lease.Snapshot) *time.Time {
	if old.Record.Until.IsZero() || !old.Now.Before(old.Record.Until) {
		return nil
	}
	end, _ := whole(old.Record.Until)
	return &end
}

// refused is the error of a swap: a conflict if it was certainly not applied because of what
// others do, or because of the time.
func refused(what, name string, err error) error {
	switch state := sqlState(err); {
	case errors.Is(err, sql.ErrNoRows) || errors.Is(err, lease.ErrConflict) || state == serializationFailure || state == deadlockDetected:
		return lease.ErrConflict
	}
	return explain(what, name, err)
}
