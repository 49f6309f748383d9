package pglease

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A Store keeps leases in PostgreSQL, over pgx. It is a [lease.Store] with the clock of the server,
// a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. It is safe for use by several
// goroutines at once.
type Store struct {
	rows
	listening *pgx.ConnConfig

	turn chan struct{} // to make the listener

	mu       sync.Mutex
	listener *listener // nil: there is none
	closed   bool
}

// New makes a Store of a pool. It makes no request. A nil pool, and options out of range, are a
// [*lease.FieldError].
func New(pool *pgxpool.Pool, o *Options) (*Store, error) {
	if pool == nil {
		return nil, lease.Missing("New.pool")
	}
	s := &Store{turn: make(chan struct{}, 1)}
	s.db, s.gate = pgxDatabase{pool}, newGate(int(pool.Config().MaxConns))
	if err := s.init(o); err != nil {
		return nil, err
	}
	s.listening = pool.Config().ConnConfig
	if o != nil && o.Listen != nil {
		s.listening = o.Listen.Copy()
	}
	return s, nil
}

// Lease returns a holder of the lease with that name. Nil options mean the defaults of a
// [session.Session].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It needs fewer exchanges than that of
// [lease.NewAuthority], which loads before every swap: it begins a renewal, a change and a release
// with what the Store committed last under that name. It is never refused because of that. It is a
// [lease.Watcher] and a [lease.Lister].
func (s *Store) Authority() lease.Authority { return watchingAuthority{s.authority(), s} }

type watchingAuthority struct {
	authority
	lease.Watcher
}

// A pgxDatabase is a database over a pool of pgx. Its requests return when their context ends.
type pgxDatabase struct{ pool *pgxpool.Pool }

func (d pgxDatabase) ask(ctx context.Context, leave func(), sql string, args, dest []any) error {
	defer leave()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		if stat := d.pool.Stat(); ctx.Err() != nil && stat.AcquiredConns() >= stat.MaxConns() {
			return &busyError{int(stat.MaxConns()), false, err}
		}
		return &connectError{err}
	}
	defer conn.Release()
	return conn.QueryRow(ctx, sql, args...).Scan(dest...)
}

func (d pgxDatabase) again(n int, err error) bool {
	return n <= int(d.pool.Config().MaxConns) && broken(err)
}

// broken reports whether an existing connection broke. After a restart of the server, a pool still
// hands out each of its old connections once.
func broken(err error) bool {
	var connect *connectError
	var busy *busyError
	switch state := sqlState(err); {
	case errors.As(err, &connect), errors.As(err, &busy):
		return false // there is no server to make one with, or no place for one
	case state != "":
		return state == adminShutdown || state == crashShutdown
	}
	return true
}
