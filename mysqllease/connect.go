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

// connectTimeout is the limit on the time of an attempt to connect, if the configuration sets none. A server that is
// frozen, unlike one that is down, accepts a connection and never answers.
const connectTimeout = 2 * time.Second

// setup prepares each connection. With READ COMMITTED, no statement locks the gaps between rows, in which other
// leases are inserted. A statement waits for the lock of a row for at most three seconds, because the server does not
// notice that its client has gone.
var setup = []string{
	"set names utf8mb4",
	"set session transaction isolation level read committed",
	"set session time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, innodb_lock_wait_timeout = 3",
}

// A connector makes connections that are ready for the statements of a store.
type connector struct {
	driver.Connector
	timeout time.Duration
}

func newConnector(c *mysql.Config) (connector, error) {
	c = c.Clone()
	if c.Timeout == 0 {
		c.Timeout = connectTimeout
	}
	c.InterpolateParams = true // one exchange for a statement
	c.MultiStatements, c.ClientFoundRows, c.ParseTime = false, false, false
	inner, err := mysql.NewConnector(c)
	return connector{inner, c.Timeout}, err
}

// Connect connects within the limit, which includes the handshake: the driver applies it to the dial only, and a pool
// connects in the background, without the deadline of a request.
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
	// A server that was started with sysdate-is-now would read the clock before it locks a row.
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

// read sends a request that is safe to repeat. It repeats the request if the connection broke, because after a
// restart of the server, every connection of the pool can be broken. It also repeats the request after a deadlock,
// because the server then rolls back a request that only reads, for example if a person deletes the row at the same
// time.
func (s *Store) read(ctx context.Context, f request) error {
	return s.enter(ctx, engine.Request{}, f, func(err error) bool { return connectionBroke(err) || number(err) == deadlock })
}

// never is for writes, which must not be repeated: if the connection broke, the server might have carried
// out the write.
func never(error) bool { return false }

// enter sends a request as soon as the gate lets it through.
func (s *Store) enter(ctx context.Context, r engine.Request, f request, again func(error) bool) error {
	r.Urgent = r.Urgent || engine.IsUrgent(ctx)
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return err
	}
	return s.send(ctx, pass, f, again)
}

// send sends a request that the gate has let through. It repeats the request if again returns true for its
// error, or, over another connection, if a server has refused the request because the server is read-only.
func (s *Store) send(ctx context.Context, pass engine.Pass, f request, again func(error) bool) error {
	defer func() { pass.Leave(ctx.Err() == nil) }()
	for retries := s.db.Stats().OpenConnections + 1; ; retries-- {
		err := s.once(ctx, f)
		if retries <= 0 || ctx.Err() != nil || !isReadOnly(err) && !again(err) {
			return err
		}
	}
}

// once sends a request once, over a connection of the pool, and closes the connection after two kinds of errors.
// First, a server that has become read-only, or is stopping, can keep its connections open while new ones lead to
// another server. Second, the server itself closes the connection after a statement that is too large, and the pool
// would otherwise send the next request over it.
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

// A connectError reports that a request got no connection.
type connectError struct{ err error }

func (e *connectError) Error() string   { return fmt.Sprintf("no connection: %v", e.err) }
func (e *connectError) Unwrap() []error { return []error{lease.ErrUnsent, e.err} }

// tablesVersion is the oldest version of [Tables] that this package accepts. It accepts newer ones, too.
const tablesVersion = 1

// tables describes the server. [Store.Load] always reads it with the row.
type tables struct {
	version  int
	readOnly string
}

func (t tables) check() error {
	switch {
	case t.version < tablesVersion:
		return lease.Permanent(fmt.Errorf("the tables have version %d, and must have %d or newer: call mysqllease.Migrate, which keeps the leases", t.version, tablesVersion))
	case t.readOnly != "0" && t.readOnly != "OFF":
		return errReadOnly // it may be a replica, which would answer with records that are out of date
	}
	return nil
}
