package pglease

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectTimeout is the limit on the time of an attempt to connect to one host, if the connection string
// sets none. pgx tries the next host of the connection string only after the previous attempt has ended,
// and a server that is frozen, unlike one that is down, accepts a connection and never answers.
const connectTimeout = 2 * time.Second

// boundConnect sets the limit of config if it has none, and reports whether it had none.
func boundConnect(config *pgx.ConnConfig) bool {
	if config.ConnectTimeout > 0 {
		return false
	}
	config.ConnectTimeout = connectTimeout
	return true
}

// connect returns a connection of the pool. The pool cannot be told to limit the time of an attempt: it
// waits two minutes for each host, and meanwhile the attempt occupies a place in the pool. So if a pool
// without a limit is still waiting for a server after connectTimeout, connect opens a connection outside
// the pool, which release closes. The gate limits how many of these are open at once.
func (d pgxDatabase) connect(ctx context.Context) (conn *pgx.Conn, release func(), err error) {
	acquiring := ctx
	if d.unbounded != nil {
		var cancel context.CancelFunc
		acquiring, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	pooled, err := d.pool.Acquire(acquiring)
	if err == nil {
		return pooled.Conn(), pooled.Release, nil
	}
	if ctx.Err() != nil || acquiring.Err() == nil {
		return nil, nil, err
	}
	if d.pool.Stat().ConstructingConns() == 0 { // all connections work, and are in use
		if pooled, err = d.pool.Acquire(ctx); err != nil {
			return nil, nil, err
		}
		return pooled.Conn(), pooled.Release, nil
	}
	if conn, err = d.connectOutside(ctx); err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close(ctx) }, nil
}

// connectOutside opens a connection as the pool would, but with a limit on the time of each attempt.
func (d pgxDatabase) connectOutside(ctx context.Context) (*pgx.Conn, error) {
	config := d.unbounded.ConnConfig.Copy()
	if d.unbounded.BeforeConnect != nil {
		if err := d.unbounded.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil || d.unbounded.AfterConnect == nil {
		return conn, err
	}
	if err := d.unbounded.AfterConnect(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}
