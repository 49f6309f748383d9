package mysqllease

import (
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// A row has the columns of lease_row, and the time at which the server has read the row. Its times are in
// microseconds since 1970.
type row struct {
	state, owner, id string
	epoch            int64
	duration         int64 // in nanoseconds, or infinite
	until            sql.NullInt64
	nanos            int64
	changed, now     int64
}

const infinite = -1

// dest returns pointers to the fields of r, in the order of the columns of a query.
func (r *row) dest() []any {
	return []any{&r.state, &r.owner, &r.id, &r.epoch, &r.duration, &r.until, &r.nanos, &r.changed, &r.now}
}

// The function values returns the arguments of a statement that writes the record rec. They have the same
// order as the fields in dest.
func values(rec lease.Record) []any {
	var id string
	var until any
	duration, nanos := int64(rec.Duration), 0
	if !rec.ID.IsZero() {
		id = rec.ID.String()
	}
	if rec.Duration == lease.Infinite {
		duration = infinite
	}
	if !rec.Until.IsZero() {
		until, nanos = roundUp(rec.Until)
	}
	return []any{rec.State.String(), []byte(rec.Owner), id, int64(rec.Epoch), duration, until, nanos}
}

// roundUp returns t in microseconds, rounded up, and how many nanoseconds the rounding has added. The
// server's clock shows whole microseconds, so it can be compared with the rounded t instead of t. For
// example, if t is 10.5 µs, the rounded t is 11 µs: a clock that shows 10 µs is before both, and a clock that
// shows 11 µs is before neither.
func roundUp(t time.Time) (micros int64, nanos int) {
	nanos = (1000 - t.Nanosecond()%1000) % 1000
	return t.Add(time.Duration(nanos)).UnixMicro(), nanos
}

// The method snapshot returns the version and the time of the row, but not its record.
func (r *row) snapshot() lease.Snapshot {
	return lease.Snapshot{Version: strconv.FormatInt(r.changed, 10), Now: time.UnixMicro(max(r.now, r.changed)).UTC()}
}

// clockLag returns how far the clock of the server is behind the last change of the row.
func (r *row) clockLag() time.Duration { return time.Duration(r.changed-r.now) * time.Microsecond }

// The method record parses the columns. It checks every value, because a person may have changed the row.
func (r *row) record() (lease.Record, error) {
	bad := func(field, value, rule string) (lease.Record, error) {
		return lease.Record{}, &lease.FieldError{Field: "Record." + field, Value: strconv.Quote(value), Bound: rule, Code: lease.ErrCorrupt}
	}
	rec := lease.Record{Owner: r.owner, Epoch: uint64(r.epoch), Duration: time.Duration(r.duration)}
	if err := rec.State.UnmarshalText([]byte(r.state)); err != nil {
		return bad("State", r.state, "must be one of the five states")
	}
	if r.id != "" {
		id, err := lease.ParseID(r.id)
		if err != nil {
			return bad("ID", r.id, "must be a GUID")
		}
		rec.ID = id
	}
	if r.duration == infinite {
		rec.Duration = lease.Infinite
	}
	if r.until.Valid {
		rec.Until = time.UnixMicro(r.until.Int64).Add(-time.Duration(r.nanos)).UTC()
	}
	return rec, rec.Validate()
}

func unreadableError(name string, err error) error {
	return fmt.Errorf("mysqllease: row %q: %w; correct it, or delete it to free the lease", name, err)
}
