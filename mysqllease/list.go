package mysqllease

import (
	"context"
	"database/sql"
	"iter"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pageSize is the number of rows that List reads in one request to the server.
const pageSize = 500

// listSQL returns a page of rows, sorted by name. It also returns whether the server is read-only.
const listSQL = `
select l.state, l.owner, l.id, l.epoch, l.duration, l.until, l.nanos, l.changed, ` + clockSQL + `, f.version,
	cast(@@global.read_only as char), l.name
from lease_floor f, lease_row l where f.one = 1 and (l.name > ? or l.name = ? and ?) order by l.name limit ?`

type listed struct {
	name string
	row
}

// List returns the leases whose names begin with prefix, sorted by the bytes of their names. It reads 500
// rows in each query. If a row is not a valid record, List yields an error for it, and goes on. See
// [lease.Lister].
//
// Unlike Load, List does not wait for other transactions. If a lease reaches its end before its renewal is
// committed, List can report the lease as expired.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		for after, first := prefix, true; ; first = false {
			page, err := s.nextRows(ctx, after, first)
			if err != nil {
				return s.describeError("list from", after, err)
			}
			for _, l := range page {
				after = l.name
				if !strings.HasPrefix(after, prefix) || !yield(s.entry(l)) {
					return nil
				}
			}
			if len(page) < pageSize {
				return nil
			}
		}
	})
}

func (s *Store) nextRows(ctx context.Context, after string, first bool) (page []listed, err error) {
	return page, s.read(ctx, func(ctx context.Context, c *sql.Conn) error {
		page = nil
		rows, err := c.QueryContext(ctx, listSQL, []byte(after), []byte(after), first, pageSize)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var l listed
			var t tables
			if err := rows.Scan(append(l.dest(), &t.version, &t.readOnly, &l.name)...); err != nil {
				return err
			}
			if err := t.check(); err != nil {
				return err
			}
			page = append(page, l)
		}
		return rows.Err()
	})
}

func (s *Store) entry(l listed) (lease.Entry, error) {
	record, err := l.record()
	if err != nil {
		return lease.Entry{Name: l.name}, unreadableError(l.name, err)
	}
	snap := l.snapshot()
	snap.Record = record
	snap = s.clock.Correct(l.name, snap, l.clockLag())
	return engine.ListEntry(l.name, snap), nil
}
