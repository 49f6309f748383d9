package pglease

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
)

// A Store keeps leases in PostgreSQL, through a pgx pool. A Store is a [lease.Store] that uses the clock of
// the server, and also a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. A Store is safe for use by
// several goroutines at once.
type Store struct {
	rows
	listening *pgx.ConnConfig
	spare     *spare // nil if the pool limits the time of an attempt to connect

	turn chan struct{} // locked while the listener is made

	mu       sync.Mutex
	listener *listener // nil if there is none
	closed   bool
}

// New returns a Store that uses pool. New sends no request. New returns a [*lease.FieldError] if pool is nil
// or an option is out of range.
func New(pool *pgxpool.Pool, o *Options) (*Store, error) {
	if pool == nil {
		return nil, fields.Missing("New.pool")
	}
	s := &Store{turn: make(chan struct{}, 1)}
	config := pool.Config()
	s.size = int(config.MaxConns)
	if err := s.init(o); err != nil {
		return nil, err
	}
	var err error
	if s.spare, err = newSpare(config); err != nil {
		return nil, err
	}
	s.db = pgxDatabase{pool, s.spare}
	s.listening = config.ConnConfig
	if o != nil && o.Listen != nil {
		s.listening = o.Listen.Copy()
	}
	boundConnect(s.listening)
	s.authority = engine.NewAuthority(s, s.renew, s.memory)
	return s, nil
}

type pgxDatabase struct {
	pool  *pgxpool.Pool
	spare *spare // of the Store
}

func (d pgxDatabase) queryRow(ctx context.Context, done func(), sql string, args []any) (text string, err error) {
	defer done()
	conn, err := d.connect(ctx)
	if err != nil {
		if stat := d.pool.Stat(); ctx.Err() != nil && stat.AcquiredConns() >= stat.MaxConns() {
			return "", &busyError{size: int(stat.MaxConns()), err: err}
		}
		return "", &connectError{err: err, unbounded: d.spare != nil}
	}
	defer conn.Release()
	if err = conn.QueryRow(ctx, sql, args...).Scan(&text); mustLeave(err) {
		d.pool.Reset() // closes conn too, when it is released
		if d.spare != nil {
			d.spare.Reset()
		}
	}
	return text, err
}

// open returns the size of the pool.
func (d pgxDatabase) open() int { return int(d.pool.Stat().MaxConns()) }

func (d pgxDatabase) idle() int { return int(d.pool.Stat().IdleConns()) }

func (d pgxDatabase) connectionBroke(err error) bool {
	var connect *connectError
	var busy *busyError
	switch state := sqlState(err); {
	case errors.As(err, &connect), errors.As(err, &busy):
		return false // there was no connection that could break
	case errors.Is(err, pgx.ErrNoRows):
		return false
	case state != "":
		return state == adminShutdown || state == crashShutdown
	}
	return true
}
