package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

const pageSize = 500

// listSQL returns a page of rows as one JSON array, because every driver can read that. Each row contains the
// time at which the server read it.
const listSQL = `
select (
	select coalesce(json_agg(json_build_object('name', r.name, 'state', r.state, 'epoch', r.epoch, 'id', coalesce(r.id::text, ''),
		'owner', r.owner, 'duration', r.duration, 'until', (extract(epoch from r.until) * 1000000)::bigint, 'nanos', r.nanos,
		'now', (extract(epoch from greatest(r.now, r.changed)) * 1000000)::bigint, 'version', r.version::text,
		'behind', (extract(epoch from r.changed - r.now) * 1000000)::bigint) order by r.name), '[]')::text
	from (select *, clock_timestamp() as now from {row} l where l.name > $1 or l.name = $1 and $2 order by l.name limit $3) r
), {schema}, getdatabaseencoding()::text, pg_client_encoding()::text
from {floor} f`

// List returns the leases whose names begin with prefix, sorted by name. List reads a few hundred rows in
// each request. If a row is not a valid record, List yields an error for it, and continues with the next row.
// See [lease.Lister].
//
// Unlike Load, List locks no rows, and does not wait for a renewal that is being committed. So if a renewal
// begins just before the end of a lease, List can report the lease as expired until the renewal is committed.
func (s *rows) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		for after, first := prefix, true; ; first = false {
			listed, err := s.nextRows(ctx, after, first)
			if err != nil {
				return describeError("list from", after, err)
			}
			for _, r := range listed {
				after = r.Name
				if !strings.HasPrefix(after, prefix) { // the names are sorted, so no later name has the prefix
					return nil
				}
				if !yield(r.entry(&s.clock)) {
					return nil
				}
			}
			if len(listed) < pageSize {
				return nil
			}
		}
	})
}

// nextRows reads a page of rows, sorted by name. For the first page, the parameter first must be true. The
// first page contains the row with the given name, if there is such a row. Every later page contains only
// rows with greater names.
func (s *rows) nextRows(ctx context.Context, after string, first bool) (listed []listedRow, err error) {
	var text string
	var d settings
	if err := s.read(ctx, s.sql.list, []any{after, first, pageSize}, []any{&text, &d.schema, &d.database, &d.client}); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		return nil, err
	}
	return listed, nil
}

// A listedRow has the values of one row, with times in microseconds.
type listedRow struct {
	Name, State, ID, Owner, Duration, Version string
	Epoch, Nanos                              int64
	Until                                     *int64
	Now, Behind                               int64 // the time of the server, and how much its clock is behind the row
}

func (r listedRow) entry(clock *engine.LateClock) (lease.Entry, error) {
	c := columns{state: r.State, epoch: r.Epoch, id: r.ID, owner: r.Owner, duration: r.Duration, nanos: r.Nanos}
	if r.Until != nil {
		c.until = new(time.UnixMicro(*r.Until))
	}
	record, err := c.record()
	if err != nil {
		return lease.Entry{Name: r.Name}, unreadableError(r.Name, err)
	}
	snap := lease.Snapshot{Record: record, Version: r.Version, Now: time.UnixMicro(r.Now).UTC()}
	return engine.ListEntry(r.Name, clock.Correct(r.Name, snap, time.Duration(r.Behind)*time.Microsecond)), nil
}

func unreadableError(name string, err error) error {
	return fmt.Errorf("pglease: row %q: %w; correct it, or delete it to free the lease", name, err)
}
