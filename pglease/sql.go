package pglease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An SQLStore is a [Store] over database/sql, without Watch. It notifies the waiters of every
// [Store]. The driver must take $1 for arguments, as those of pgx and lib/pq do. Its methods return
// when their context ends, even if the driver does not. A request that the driver does not return
// from keeps its connection. It is safe for use by several goroutines at once.
type SQLStore struct{ rows }

// NewSQL makes an SQLStore of a database. It makes no request. A nil database, and options out
// of range, are a [*lease.FieldError]. Call db.SetMaxOpenConns before: a part of the connections is
// kept for renewals.
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

// Lease returns a holder of the lease with that name. Nil options mean the defaults of a
// [session.Session].
func (s *SQLStore) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the store, as [Store.Authority] does.
func (s *SQLStore) Authority() lease.Authority { return s.authority() }

// Close waits until all releases and breaks have been notified. The SQLStore can still load and
// swap. Close does not close the database.
func (s *SQLStore) Close() { s.close() }

// An sqlDatabase is a database over database/sql. Its driver may not keep to contexts.
type sqlDatabase struct{ db *sql.DB }

func (d sqlDatabase) ask(ctx context.Context, leave func(), query string, args, dest []any) error {
	waited := d.db.Stats().WaitCount
	answer := make(chan error, 1)
	go func() {
		defer leave()
		defer func() {
			if p := recover(); p != nil { // in this goroutine it would end the process
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
		return &busyError{stats.MaxOpenConnections, true, ctx.Err()}
	}
	return ctx.Err()
}

// A panicError says that the driver panicked. lib/pq does if it gets the answer to another statement.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the driver panicked: %v", e.value) }

// again reports false: database/sql itself tries other connections.
func (d sqlDatabase) again(int, error) bool { return false }
