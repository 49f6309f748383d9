package pglease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An SQLStore keeps leases in PostgreSQL, through database/sql. It is like a [Store], but it has no
// Watch method. Its changes wake the waiters of every [Store]. The driver must accept placeholders
// such as $1, as pgx and lib/pq do. A request returns when its context is done, even if the driver
// does not return. If the driver never returns from a request, the connection of this request stays
// in use. An SQLStore is safe for use by several goroutines at once.
type SQLStore struct{ rows }

// NewSQL returns an SQLStore that uses db. It sends no request. NewSQL returns a
// [*lease.FieldError] if db is nil or an option is out of range. Call db.SetMaxOpenConns before
// NewSQL, because NewSQL reserves a part of the connections for renewals and notifications.
func NewSQL(db *sql.DB, o *Options) (*SQLStore, error) {
	if db == nil {
		return nil, lease.Missing("NewSQL.db")
	}
	s := new(SQLStore)
	s.db, s.gate = sqlDatabase{db}, newGate(db.Stats().MaxOpenConnections)
	if err := s.init(o); err != nil {
		return nil, err
	}
	return s, nil
}

// Lease returns a Session that can hold the lease with the given name. If o is nil, the Session has
// the default options of package session. Lease returns an error if name is malformed or an option
// is out of range. The error wraps a [*lease.FieldError].
func (s *SQLStore) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the store. Unlike the result of [Store.Authority], this
// authority does not implement [lease.Watcher].
func (s *SQLStore) Authority() lease.Authority { return newAuthority(s, &s.rows) }

// Close blocks until the notifications of all releases and breaks have been sent. Load and Swap
// still work after Close. Close does not close the database.
func (s *SQLStore) Close() { s.close() }

// An sqlDatabase is a database that uses database/sql. Its driver may ignore contexts.
type sqlDatabase struct{ db *sql.DB }

func (d sqlDatabase) queryRow(ctx context.Context, done func(), query string, args, dest []any) error {
	waited := d.db.Stats().WaitCount
	answer := make(chan error, 1)
	go func() {
		defer done()
		defer func() {
			if p := recover(); p != nil { // a panic in this goroutine would end the process
				answer <- &panicError{p}
			}
		}()
		answer <- d.db.QueryRowContext(ctx, query, args...).Scan(dest...)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	if stats := d.db.Stats(); stats.WaitCount > waited && stats.InUse >= stats.MaxOpenConnections {
		return &busyError{size: stats.MaxOpenConnections, sent: true, err: ctx.Err()}
	}
	return ctx.Err()
}

// A panicError reports that the driver panicked. For example, lib/pq panics if it receives an
// answer that belongs to another statement.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the driver panicked: %v", e.value) }

// canRetry returns false, because database/sql itself retries on another connection.
func (d sqlDatabase) canRetry(int, error) bool { return false }
