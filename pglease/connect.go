package pglease

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout limits an attempt to connect to one host, if the connection string sets no limit. pgx tries
// the next host of the connection string only after the previous attempt has ended, and a frozen server
// accepts a connection but never answers.
const connectTimeout = 2 * time.Second

// The constant patience limits how long a request waits while the pool is opening a connection. After that
// time, the Store opens a connection of its own, in addition to the one of the pool.
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

// A value of the type outside contains the connections that the Store opens itself, in addition to the
// connections of a pool. The Store needs such connections if the pool does not limit the time of an attempt
// to connect. Such a pool waits two minutes for each host, and meanwhile the Store sends requests over its
// own connections. An attempt to connect continues after the request that started it has ended, because a
// request can have less time than connectTimeout.
type outside struct {
	config   *pgxpool.Config // of the pool, with a limit on the time to connect
	idle     chan *pgx.Conn
	attempts chan struct{} // limits the number of attempts to connect at a time
	running  sync.WaitGroup
	ctx      context.Context // of the attempts; canceled by stop
	stop     context.CancelFunc

	mu     sync.Mutex
	closed bool
}

// newOutside prepares the connections that the Store opens itself, with the configuration of the pool. In
// this configuration, newOutside sets a limit on the time of an attempt to connect, so the caller must pass a
// copy. If the pool already has such a limit, newOutside returns nil.
func newOutside(config *pgxpool.Config) *outside {
	if !boundConnect(config.ConnConfig) {
		return nil
	}
	o := &outside{config: config, idle: make(chan *pgx.Conn, config.MaxConns), attempts: make(chan struct{}, config.MaxConns)}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

func (d pgxDatabase) connect(ctx context.Context) (*pgx.Conn, func(), error) {
	if d.outside == nil {
		return d.acquire(ctx)
	}
	for {
		if d.pool.Stat().ConstructingConns() == 0 {
			d.outside.drain()
		}
		select {
		case conn := <-d.outside.idle:
			return conn, func() { d.outside.put(conn) }, nil
		default:
		}
		waiting, cancel := context.WithTimeout(ctx, patience)
		conn, release, err := d.acquire(waiting)
		late := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return conn, release, err
		}
		if d.pool.Stat().ConstructingConns() == 0 { // all connections are in use
			return d.acquire(ctx)
		}
		failed := d.outside.attempt()
		select {
		case conn := <-d.outside.idle:
			return conn, func() { d.outside.put(conn) }, nil
		case err := <-failed:
			return nil, nil, err
		case <-time.After(connectTimeout): // another request may have got the connection, or the pool may have connected
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (d pgxDatabase) acquire(ctx context.Context) (*pgx.Conn, func(), error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return conn.Conn(), conn.Release, nil
}

// attempt opens a connection in the background, unless enough attempts are under way or the Store is closed.
// If the attempt fails, its error arrives in the returned channel.
func (o *outside) attempt() <-chan error {
	failed := make(chan error, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return failed
	}
	select {
	case o.attempts <- struct{}{}:
	default:
		return failed
	}
	o.running.Go(func() {
		defer func() { <-o.attempts }()
		conn, err := o.connect(o.ctx)
		if err != nil {
			failed <- err
			return
		}
		o.put(conn)
	})
	return failed
}

// connect opens a connection as the pool would, but with a limit on the time of each attempt.
func (o *outside) connect(ctx context.Context) (*pgx.Conn, error) {
	config := o.config.ConnConfig.Copy()
	if o.config.BeforeConnect != nil {
		if err := o.config.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil || o.config.AfterConnect == nil {
		return conn, err
	}
	if err := o.config.AfterConnect(ctx, conn); err != nil {
		closeNow(conn)
		return nil, err
	}
	return conn, nil
}

func (o *outside) put(conn *pgx.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && !conn.IsClosed() {
		select {
		case o.idle <- conn:
			return
		default:
		}
	}
	closeNow(conn)
}

func (o *outside) drain() {
	for {
		select {
		case conn := <-o.idle:
			closeNow(conn)
		default:
			return
		}
	}
}

// The method close closes all idle connections and ends the attempts to connect. A connection that a request
// still uses is closed when the request gives the connection back.
func (o *outside) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.stop()
	o.running.Wait()
	o.drain()
}

// closeNow closes a connection without waiting long for the server.
func closeNow(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = conn.Close(ctx)
}
