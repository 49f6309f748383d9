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
)

// connectTimeout limits the time of an attempt to connect if the configuration has no Timeout. Unlike a
// server that is down, a frozen server accepts connections, but never answers.
const connectTimeout = 2 * time.Second

// The variable setup has the statements that prepare each connection. READ COMMITTED prevents a statement
// from locking the gaps between rows, where other leases may be inserted. A statement waits at most three
// seconds for the lock of a row, because the server would not notice that its client has gone.
var setup = []string{
	"set names utf8mb4",
	"set session transaction isolation level read committed",
	"set session time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, innodb_lock_wait_timeout = 3",
}

type connector struct {
	driver.Connector
	timeout time.Duration
}

func newConnector(c *mysql.Config) (connector, error) {
	c = c.Clone()
	if c.Timeout == 0 {
		c.Timeout = connectTimeout
	}
	c.InterpolateParams = true // so that a statement takes one round trip
	c.MultiStatements, c.ClientFoundRows, c.ParseTime = false, false, false
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
	for _, statement := range setup {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	// If the server was started with sysdate-is-now, it would read the clock before it locks a row.
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "select sleep(0.001) + (now(6) = sysdate(6))", nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	late := make([]driver.Value, 1)
	if err := rows.Next(late); err != nil {
		return err
	}
	if fmt.Sprintf("%s", late[0]) != "0" && late[0] != int64(0) {
		return lease.Permanent(errors.New("the server runs with sysdate-is-now, so its time cannot be read while a row is locked: start it without that option"))
	}
	return nil
}

type request func(context.Context, *sql.Conn) error

// The method read sends a request that only reads, so the request can be sent again. After a restart of the
// server, every connection of the pool can be broken, so the method tries again over another connection. It
// also tries again after a deadlock, for example if somebody deletes the row at the same time.
func (s *Store) read(ctx context.Context, f request) error {
	return s.enter(ctx, engine.Request{}, f, true)
}

// The method enter sends a request as soon as the gate lets it through.
func (s *Store) enter(ctx context.Context, r engine.Request, f request, reads bool) error {
	r.Urgent = r.Urgent || engine.IsUrgent(ctx)
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return err
	}
	return s.send(ctx, pass, f, reads)
}

// The method send sends a request that the gate has let through. If a server has refused the request because
// the server is read-only, send repeats the request over another connection. After any other error, send does
// not repeat a write, because the server may have carried out the write, for example if the connection broke.
func (s *Store) send(ctx context.Context, pass engine.Pass, f request, reads bool) error {
	defer func() { pass.Leave(ctx.Err() == nil) }()
	for retries := s.db.Stats().OpenConnections + 1; ; retries-- {
		err := s.once(ctx, f)
		again := isReadOnly(err) || reads && (connectionBroke(err) || number(err) == deadlock)
		if retries <= 0 || ctx.Err() != nil || !again {
			return err
		}
	}
}

// The method once sends a request a single time, over a connection of the pool. If the server is read-only or
// is stopping, the method closes the connection, because a new connection may lead to another server. After a
// statement that is too large, the server closes its end of the connection, so the method also closes the
// connection.
func (s *Store) once(ctx context.Context, f request) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return &connectError{err}
	}
	defer c.Close()
	if err = f(ctx, c); mustLeave(err) {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// A connectError means that no connection was available, so the request was not sent.
type connectError struct{ err error }

func (e *connectError) Error() string   { return fmt.Sprintf("no connection: %v", e.err) }
func (e *connectError) Unwrap() []error { return []error{lease.ErrUnsent, e.err} }

// tablesVersion is the oldest version of [Tables] that this package accepts. It accepts all newer ones, too.
const tablesVersion = 1

// The type tables describes the tables and the server. [Store.Load] reads this together with the row.
type tables struct {
	version  int
	readOnly string
}

func (t tables) check() error {
	switch {
	case t.version < tablesVersion:
		return lease.Permanent(fmt.Errorf("the tables have version %d, and must have %d or newer: call mysqllease.Migrate, which keeps the leases", t.version, tablesVersion))
	case t.readOnly != "0" && t.readOnly != "OFF":
		return errReadOnly // a replica could answer with outdated records
	}
	return nil
}
