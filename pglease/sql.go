package pglease

import (
	"context"
	"database/sql"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An SQLStore is a [Store] over database/sql. It has no notifications: whoever waits, polls.
// The driver must take PostgreSQL's $1 for arguments, as those of pgx and lib/pq do.
type SQLStore struct{ rows }

// NewSQL makes an SQLStore of a database. It makes no request. A nil database, and options out
// of range, are a [*lease.FieldError].
func NewSQL(db *sql.DB, o *Options) (*SQLStore, error) {
	if db == nil {
		return nil, &lease.FieldError{Field: "NewSQL.db", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	s := new(SQLStore)
	if err := s.init(o); err != nil {
		return nil, err
	}
	s.query = func(ctx context.Context, query string, args ...any) row {
		return db.QueryRowContext(ctx, query, args...)
	}
	return s, nil
}

// Lease returns a holder of the lease of that name. Nil options mean the defaults of a
// [session.Session].
func (s *SQLStore) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the store, as [Store.Authority] does.
func (s *SQLStore) Authority() lease.Authority { return s.authority() }
