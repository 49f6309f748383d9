package mysqllease

import (
	"context"
	"database/sql"
	"iter"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pageSize is the number of rows that List reads in one request to the server.
const pageSize = 500

// listSQL returns a page of rows, sorted by name.
const listSQL = `
select ` + stateSQL + `, l.owner, l.id, l.epoch, l.duration, l.until, l.nanos, l.changed, ` + clockSQL + `, l.name
from (select lease_writable()) w, lease_row l where l.name > ? and l.name >= ? order by l.name limit ?`

// List returns the leases whose names begin with prefix, sorted by the bytes of their names. It reads 500
// rows in each query. If a row is not a valid record, List yields an error for it, and goes on. See
// [lease.Lister].
//
// Unlike Load, List does not wait for other transactions. If a lease reaches its end before its renewal is
// committed, List can report the lease as expired.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.ListPages(ctx, prefix, pageSize, func(after string) (page []engine.Listed, err error) {
		err = s.do(ctx, engine.Request{}, func(c *sql.Conn) error {
			page = nil
			return query(ctx, c, listSQL, []any{[]byte(after), []byte(prefix), pageSize}, func(scan scanner) error {
				var r engine.Row
				var name string
				if err := scanRow(&r, scan, &name); err != nil {
					return err
				}
				snap, err := s.snapshot(name, r)
				page = append(page, engine.Listed{Entry: engine.ListEntry(name, snap), Err: err})
				return nil
			})
		})
		if err != nil {
			err = describeError("list from", max(after, prefix), err)
		}
		return page, err
	})
}

// The function query passes each row of the result of a query to the function each.
func query(ctx context.Context, c *sql.Conn, text string, args []any, each func(scanner) error) error {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
