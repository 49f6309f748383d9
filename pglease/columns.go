package pglease

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// rowSQL returns the row r as JSON, with times in microseconds. If the lease has no row, the values come from
// the row f of lease_floor.
const rowSQL = `json_build_object('name', r.name, 'state', r.state, 'owner', r.owner, 'id', r.id, 'duration', r.duration,
	'epoch', coalesce(r.epoch, f.epoch), 'version', coalesce(r.version, f.version),
	'until', (extract(epoch from r.until) * 1000000)::bigint, 'nanos', r.nanos,
	'changed', (extract(epoch from r.changed) * 1000000)::bigint,
	'now', (extract(epoch from coalesce(r.now, clock_timestamp())) * 1000000)::bigint)`

// A storedRow is a row as [rowSQL] returns it.
type storedRow struct {
	engine.Row
	Name     string
	Duration string // as [durationColumn] returns it
}

// readRows reads rows, together with the settings of the database and the connection.
func (s *rows) readRows(ctx context.Context, sql string, args ...any) ([]storedRow, error) {
	var answer struct {
		settings
		Rows []storedRow
	}
	if err := s.query(ctx, engine.Request{}, statement{sql, args, &answer, true}); err != nil {
		return nil, err
	}
	return answer.Rows, answer.check()
}

// The method snapshot returns the record in the row. It checks every value, because a person can write a row
// by hand.
func (r storedRow) snapshot(name string, clock *engine.LateClock) (snap lease.Snapshot, err error) {
	if r.Row.Duration, err = parseDuration(r.Duration); err == nil {
		snap, err = r.Row.Snapshot(name, clock)
	}
	if err != nil {
		err = fmt.Errorf("pglease: row %q: %w; correct it, or delete it to free the lease", name, err)
	}
	return snap, err
}

const infinite = "infinite"

// durationColumn returns the text of a duration that a row contains. The text is readable in psql.
func durationColumn(d time.Duration) string {
	switch d {
	case lease.Infinite:
		return infinite
	case 0:
		return ""
	}
	return d.String()
}

// parseDuration returns the Duration of an [engine.Row].
func parseDuration(text string) (int64, error) {
	switch text {
	case infinite:
		return -1, nil
	case "":
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, &lease.FieldError{Field: "Record.Duration", Value: strconv.Quote(text), Bound: "must be a duration as Go writes it, such as 1m0s, or infinite", Code: lease.ErrCorrupt}
	}
	return int64(d), nil
}

// endColumn returns the end of a record, rounded up to a whole microsecond, or nil if the record has no end.
func endColumn(r engine.Row) *time.Time {
	if r.Until == nil {
		return nil
	}
	return new(time.UnixMicro(*r.Until).UTC())
}
