package mysqllease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
)

// connectTimeout limits the time of an attempt to connect if the configuration has no Timeout. Unlike a
// server that is down, a frozen server accepts connections, but never answers.
const connectTimeout = 2 * time.Second

// The statements of setup prepare each connection. READ COMMITTED prevents a statement from locking the gaps
// between rows, where other leases may be inserted. A statement waits at most three seconds for the lock of a
// row, because the server would not notice that its client has gone. The query returns 0 unless the server
// was started with sysdate-is-now. Such a server would read the clock before it locks a row.
const setup = `
set names utf8mb4, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, innodb_lock_wait_timeout = 3;
set session transaction isolation level read committed;
select sleep(0.001) + (now(6) = sysdate(6))`

type connector struct {
	driver.Connector
	timeout time.Duration
}

// newConnector returns a connector for the configuration c, which is the argument of the named function.
func newConnector(function string, c *mysql.Config) (connector, error) {
	if c == nil {
		return connector{}, fields.Missing(function + ".c")
	}
	c = c.Clone()
	if c.Timeout == 0 {
		c.Timeout = connectTimeout
	}
	c.InterpolateParams, c.MultiStatements = true, true // so that a request takes one round trip
	c.ClientFoundRows, c.ParseTime = false, false
	c.CheckConnLiveness = true // so that a connection that has broken meanwhile is not used
	c.RejectReadOnly = true    // if the server is read-only, the driver closes the connection, and returns driver.ErrBadConn
	inner, err := mysql.NewConnector(c)
	return connector{inner, c.Timeout}, err
}

// Connect connects within the timeout, including the handshake. The driver itself limits only the time to
// open the network connection. The context does not always limit the handshake, because a pool that connects
// in the background passes a context without a deadline.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func prepare(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, setup, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	early := make([]driver.Value, 1)
	if err := rows.Next(early); err != nil {
		return err
	}
	if early[0] != int64(0) {
		return lease.Permanent(errors.New("the server runs with sysdate-is-now, so its time cannot be read while a row is locked: start it without that option"))
	}
	return nil
}

// The method do sends a request as soon as the gate lets it through.
func (s *Store) do(ctx context.Context, r engine.Request, f func(*sql.Conn) error) error {
	return s.gate.Do(ctx, r, func() error { return s.send(ctx, f) })
}

// The method send sends a request. It repeats a request that the server has certainly not carried out, because
// a new connection may lead to another server. This is the case if the driver returns driver.ErrBadConn: the
// connection was closed before the request was sent, or the server is read-only. It is also the case after a
// deadlock, for example if somebody deletes the row at the same time. After any other error, the server may
// have carried out the request.
func (s *Store) send(ctx context.Context, f func(*sql.Conn) error) (err error) {
	for range s.db.Stats().OpenConnections + 2 {
		err = s.once(ctx, f)
		if ctx.Err() != nil || !errors.Is(err, driver.ErrBadConn) && number(err) != deadlock {
			return err
		}
	}
	return fmt.Errorf("%w: %w", lease.ErrUnsent, err)
}

var errNoConnection = errors.New("no connection")

// The method once sends a request a single time, over a connection of the pool.
func (s *Store) once(ctx context.Context, f func(*sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	switch {
	case err != nil && s.closed.Load():
		return errors.Join(lease.ErrClosed, err)
	case err != nil:
		return fmt.Errorf("%w: %w: %w", lease.ErrUnsent, errNoConnection, err)
	}
	defer c.Close()
	return f(c)
}
