package pglease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
)

// An SQLStore keeps leases in PostgreSQL, through database/sql. An SQLStore is like a [Store] without the
// method Watch, and its authority is not a [lease.Watcher]. When an SQLStore changes a lease, the server still
// notifies the processes that watch the lease with a Store. The driver must accept placeholders such as $1,
// as pgx and lib/pq do. A request returns when its context is done, even if the driver does not return, but
// its connection then stays in use. An SQLStore is safe for use by several goroutines at once.
type SQLStore struct{ rows }

// NewSQL returns an SQLStore that uses db. NewSQL sends no request. NewSQL returns a [*lease.FieldError] if
// db is nil or an option is out of range.
//
// With the driver of pgx, call db.SetMaxOpenConns with 4 or more before NewSQL. With lib/pq, do not limit the
// number of connections: lib/pq does not close a connection that dies silently, so such connections could use
// up the whole pool. Without a limit, however, renewals have no priority over other requests, and a burst of
// requests opens a connection for each of them.
func NewSQL(db *sql.DB, o *Options) (*SQLStore, error) {
	if db == nil {
		return nil, fields.Missing("NewSQL.db")
	}
	s := new(SQLStore)
	s.db, s.size = sqlDatabase{db}, db.Stats().MaxOpenConnections
	if err := s.init(o); err != nil {
		return nil, err
	}
	s.authority = engine.NewAuthority(s, s.renew, s.memory)
	return s, nil
}

// Close waits until the notifications of all releases and breaks have been sent. Close does not close the
// database. Load and Swap still work after Close.
func (s *SQLStore) Close() { s.close() }

// An sqlDatabase is a database that uses database/sql, with a driver that may ignore contexts.
type sqlDatabase struct{ db *sql.DB }

func (d sqlDatabase) queryRow(ctx context.Context, done func(), query string, args []any) (string, error) {
	waited := d.db.Stats().WaitCount
	var connected atomic.Bool
	text, err := engine.Call(ctx, func() (text string, err error) {
		defer done()
		defer func() {
			if p := recover(); p != nil {
				err = &panicError{p}
			}
		}()
		return d.query(ctx, &connected, query, args)
	})
	switch stats := d.db.Stats(); {
	case err == nil, err != ctx.Err(), connected.Load():
		return text, err
	case stats.WaitCount > waited && stats.InUse >= stats.MaxOpenConnections: // ctx has ended
		return "", &busyError{size: stats.MaxOpenConnections, sent: true, err: err}
	}
	return "", &connectError{err: err, unbounded: true}
}

// query runs a statement once, and sets connected as soon as it has a connection. query uses an sql.Conn,
// because sql.DB repeats a statement after driver.ErrBadConn. lib/pq returns this error even if the server
// has already carried out the statement.
func (d sqlDatabase) query(ctx context.Context, connected *atomic.Bool, query string, args []any) (text string, err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return "", &connectError{err: err, unbounded: true}
	}
	connected.Store(true)
	if err = conn.QueryRowContext(ctx, query, args...).Scan(&text); mustLeave(err) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
	}
	_ = conn.Close() // not deferred, because Close blocks after a panic of the driver
	return text, err
}

// A panicError reports that the driver panicked, as lib/pq does if it receives the answer to another
// statement.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the driver panicked: %v", e.value) }

func (d sqlDatabase) open() int { return d.db.Stats().OpenConnections }

func (d sqlDatabase) idle() int { return d.db.Stats().Idle }

func (d sqlDatabase) connectionBroke(err error) bool { return errors.Is(err, driver.ErrBadConn) }
