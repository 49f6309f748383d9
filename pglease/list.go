package pglease

import (
	"context"
	"iter"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

const pageSize = 500

// listSQL returns a page of rows. Each row contains the time at which the server read it.
const listSQL = `
select json_build_object({settings}, 'rows', (
	select json_agg({json} order by r.name)
	from (select *, clock_timestamp() as now from {row} l where l.name > $1 and l.name >= $2 order by l.name limit $3) r
))::text
from {floor} f`

// List returns the leases whose names begin with prefix, sorted by name. List reads a few hundred rows in
// each request. If a row is not a valid record, List yields an error for it, and continues with the next row.
// See [lease.Lister].
//
// Unlike Load, List locks no rows, and does not wait for a renewal that is being committed. So if a renewal
// begins just before the end of a lease, List can report the lease as expired until the renewal is committed.
func (s *rows) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.ListPages(ctx, prefix, pageSize, func(after string) ([]engine.Listed, error) {
		listed, err := s.readRows(ctx, s.sql.list, after, prefix, pageSize)
		if err != nil {
			return nil, describeError("list from", max(after, prefix), err)
		}
		page := make([]engine.Listed, len(listed))
		for i, r := range listed {
			snap, err := r.snapshot(r.Name, &s.clock)
			page[i] = engine.Listed{Entry: engine.ListEntry(r.Name, snap), Err: err}
		}
		return page, nil
	})
}
