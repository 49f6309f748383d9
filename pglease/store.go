package pglease

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Schema is the SQL that makes the tables and triggers. It is the file schema.sql.
//
//go:embed schema.sql
var Schema string

// Options are the settings of a [Store] or an [SQLStore]. A nil *Options and zero fields have
// the defaults stated here.
type Options struct {
	// Schema in which the tables are. Default: wherever the search path finds them.
	Schema string

	// Limits are the durations that an authority over the store grants. Default: none.
	Limits lease.Limits

	// Listen is how a [Store] connects to listen, where that has to be past a pooler. Default:
	// as its pool does.
	Listen *pgx.ConnConfig
}

// A row is what a query returned.
type row interface{ Scan(...any) error }

// rows is a [lease.Store] over whatever can run a query.
type rows struct {
	query  func(ctx context.Context, sql string, args ...any) row
	limits lease.Limits
	sql    struct{ load, put, putNew string }

	// again reports after a failed load whether another connection may do better, the n-th time.
	again func(n int, err error) bool
}

func (s *rows) init(o *Options) error {
	if o == nil {
		o = new(Options)
	}
	if strings.IndexByte(o.Schema, 0) >= 0 {
		return &lease.FieldError{Field: "Options.Schema", Value: strconv.Quote(o.Schema), Bound: "must not have a NUL", Code: lease.ErrOption}
	}
	if err := o.Limits.Valid(); err != nil {
		return err
	}
	s.limits = o.Limits
	in := ""
	if o.Schema != "" {
		in = `"` + strings.ReplaceAll(o.Schema, `"`, `""`) + `".`
	}
	name := strings.NewReplacer("{lease}", in+"lease", "{floor}", in+"lease_floor")
	s.sql.load, s.sql.put, s.sql.putNew = name.Replace(load), name.Replace(put), name.Replace(putNew)
	return nil
}

// load reads a row and the time. Whether a row that has come to its until is still the
// current one is found out under a lock of it: otherwise a swap that was decided before the
// until, and commits after, would change what somebody has already seen to be over. A server
// in recovery refuses the lock, so that a standby answers nothing.
const load = `
with seen as materialized (
	select l.record, l.floor, l.version, l.changed, clock_timestamp() as now from {lease} l where l.name = $1
), over as materialized (
	select l.record, l.floor, l.version, l.changed, clock_timestamp() as now
	from {lease} l join seen on (seen.record->>'until')::timestamptz <= greatest(seen.now, seen.changed)
	where l.name = $1 for share of l
), row as (
	select * from over union all select * from seen where not exists (select from over)
)
select coalesce(r.record::text, ''), coalesce(r.floor, f.epoch), coalesce(r.version, f.version), coalesce(greatest(r.now, r.changed), clock_timestamp())
from {floor} f left join row r on true`

// put is the swap of a row. The time is read once the row is locked, and once: it is the one
// that the until, if there is one to come, is compared with, and that of the swap.
const put = `
with old as materialized (
	select l.name, l.changed from {lease} l where l.name = $1 and l.version = $2 for update
), at as materialized (
	select old.name, greatest(clock_timestamp(), old.changed) as now from old
)
update {lease} l set record = $3::json, changed = at.now from at
where l.name = at.name and ($4::timestamptz is null or at.now < $4::timestamptz)
returning l.version, l.changed`

// putNew is the swap of a name that had no row. The lock of the floor keeps rows from being
// deleted, and with it the version of the absence the same, until the insert has committed.
const putNew = `
insert into {lease} (name, record) select $1, $3::json from {floor} f where f.version = $2 for share
on conflict (name) do nothing
returning version, changed`

// absent begins the version of a name without a row.
const absent = "absent-"

// Limits returns the limits the store was made with.
func (s *rows) Limits() lease.Limits { return s.limits }

// Load returns the record under name and the time of the server.
func (s *rows) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	var record string
	var floor, version int64
	var now time.Time
	for n := 1; ; n++ {
		err := s.query(ctx, s.sql.load, name).Scan(&record, &floor, &version, &now)
		if err == nil {
			break
		}
		if ctx.Err() != nil || s.again == nil || !s.again(n, err) {
			return lease.Snapshot{}, explain("load", name, err)
		}
	}
	snap := lease.Snapshot{Version: strconv.FormatInt(version, 10), Now: now.UTC()}
	if record == "" {
		snap.Version = absent + snap.Version
	} else if err := json.Unmarshal([]byte(record), &snap.Record); err != nil {
		return lease.Snapshot{}, fmt.Errorf("pglease: row %q: %w; put its record right, or delete the row to free the lease", name, err)
	}
	snap.Record.Epoch = max(snap.Record.Epoch, uint64(floor))
	return snap, nil
}

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
	record, err := next.MarshalJSON()
	if err != nil {
		return lease.Snapshot{}, err
	}
	digits, wasAbsent := strings.CutPrefix(old.Version, absent)
	version, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("pglease: version %q is not of this store", old.Version)
	}
	query, args := s.sql.putNew, []any{name, version, string(record)}
	if !wasAbsent {
		query, args = s.sql.put, append(args, until(old))
	}
	var now time.Time
	switch err := s.query(ctx, query, args...).Scan(&version, &now); {
	case errors.Is(err, sql.ErrNoRows) || sqlState(err) == serializationFailure || sqlState(err) == deadlockDetected:
		return lease.Snapshot{}, lease.ErrConflict
	case err != nil:
		return lease.Snapshot{}, explain("swap", name, err)
	}
	return lease.Snapshot{Record: next, Version: strconv.FormatInt(version, 10), Now: now.UTC()}, nil
}

// until is the end that the row must not have come to, nil if there is none ahead. The server
// counts in microseconds: it has come to an end when it has come to the next whole one.
func until(old lease.Snapshot) *time.Time {
	end := old.Record.Until
	if end.IsZero() || !old.Now.Before(end) {
		return nil
	}
	if whole := end.Truncate(time.Microsecond); whole != end {
		end = whole.Add(time.Microsecond)
	}
	return &end
}
