package pglease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout limits an attempt to connect to one host, if the connection string sets no limit. pgx tries
// the next host of the connection string only after the previous attempt has ended, and a frozen server
// accepts a connection but never answers.
const connectTimeout = 2 * time.Second

// The constant patience limits how long a request waits while the pool is opening a connection. After that
// time, the Store opens a connection of its [spare].
const patience = 300 * time.Millisecond

// boundConnect sets ConnectTimeout in config unless it is set already, and reports whether boundConnect has
// set it.
func boundConnect(config *pgx.ConnConfig) bool {
	if config.ConnectTimeout > 0 {
		return false
	}
	config.ConnectTimeout = connectTimeout
	return true
}

// A spare is a second pool with the configuration of the first one, except that the time of its attempts to
// connect is limited. The Store needs it if the first pool has no such limit. While that pool waits two
// minutes for each host, the Store sends requests over the connections of the spare. An attempt to connect
// continues after the request that started it has ended, because a request can have less time than
// connectTimeout.
type spare struct {
	*pgxpool.Pool
	cut    context.CancelFunc // closes all connections, and makes all attempts to connect fail
	closed atomic.Bool
}

// newSpare returns nil if the pool with the given configuration has a limit already. Otherwise newSpare sets
// the limit in config, so the caller must pass a copy.
func newSpare(config *pgxpool.Config) (*spare, error) {
	if !boundConnect(config.ConnConfig) {
		return nil, nil
	}
	config = config.Copy()
	config.MinConns, config.MinIdleConns = 0, 0
	uncut, cut := context.WithCancel(context.Background())
	config.ConnConfig.DialFunc = until(uncut, config.ConnConfig.DialFunc)
	p, err := pgxpool.NewWithConfig(uncut, config)
	return &spare{Pool: p, cut: cut}, err
}

func (d pgxDatabase) connect(ctx context.Context) (*pgxpool.Conn, error) {
	connecting := func() bool { return d.pool.Stat().ConstructingConns() > 0 }
	for d.spare != nil {
		if !connecting() {
			d.spare.Reset()
		}
		if d.spare.Stat().IdleConns() == 0 {
			if conn, late, err := acquireWithin(ctx, d.pool, patience); !late {
				return conn, err
			}
			if !connecting() { // all connections are in use
				break
			}
		}
		conn, late, err := acquireWithin(ctx, d.spare.Pool, connectTimeout)
		if d.spare.closed.Load() && err != nil {
			break
		}
		if !late { // otherwise the first pool may have connected
			return conn, err
		}
	}
	return d.pool.Acquire(ctx)
}

// acquireWithin acquires a connection. If this takes longer than limit, although ctx has not ended, late is
// true.
func acquireWithin(ctx context.Context, from *pgxpool.Pool, limit time.Duration) (conn *pgxpool.Conn, late bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err = from.Acquire(waiting)
	return conn, err != nil && waiting.Err() != nil && ctx.Err() == nil, err
}

// The method close closes all connections of the spare and ends its attempts to connect. It waits for running
// requests, but not for long.
func (s *spare) close() {
	if s != nil {
		s.closed.Store(true)
		defer s.cut()
		defer time.AfterFunc(closeTimeout, s.cut).Stop()
		s.Close()
	}
}
