package pglease

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/fencedlease/lease/engine"
)

// A statement is an SQL statement that returns one row with one text, which is JSON.
type statement struct {
	sql    string
	args   []any
	answer any  // a pointer, to which the JSON is decoded
	safe   bool // the statement may be carried out twice
}

type database interface {
	// queryRow runs a statement once and returns its text. queryRow returns as soon as ctx is done, but the
	// connection can be in use for longer. The function done is called when the connection is free again. If
	// [mustLeave] returns true for the error, queryRow closes the connection.
	queryRow(ctx context.Context, done func(), sql string, args []any) (string, error)

	// open returns the number of open connections, or an upper bound of that number.
	open() int

	// idle returns the number of open connections that are not in use, or an upper bound of that number.
	idle() int

	// connectionBroke reports whether err means that a connection broke, so that the outcome is unknown.
	connectionBroke(err error) bool
}

// query runs a statement as soon as the [engine.Gate] of the store allows it.
func (s *rows) query(ctx context.Context, r engine.Request, st statement) error {
	r.Urgent = r.Urgent || engine.IsUrgent(ctx)
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return &busyError{size: s.size, err: err}
	}
	return s.send(ctx, pass, st)
}

// send runs a statement that the [engine.Gate] of the store has allowed. If a connection breaks, the server
// might have carried out the statement even if the driver says that it did not, so send repeats only a
// statement that is safe to repeat. Otherwise send removes the broken connections from the pool, so that the
// next request is likely to get a working one.
func (s *rows) send(ctx context.Context, pass engine.Pass, st statement) error {
	u := &use{ctx: ctx, pass: pass}
	u.users.Store(1)
	defer u.end()
	text, err := s.repeat(u, st)
	if err == nil {
		return json.Unmarshal([]byte(text), st.answer)
	}
	if ctx.Err() == nil && !st.safe && s.db.connectionBroke(err) {
		_, _ = s.repeat(u, statement{sql: "select '1'", safe: true})
	}
	return err
}

// The method repeat runs a statement, and runs it again after some errors. If a server refuses the statement
// because the server is read-only, the method tries all idle connections, and then a new connection. If a
// connection breaks, the method runs the statement again only if the statement is safe to repeat. After a
// restart of the server, the pool can hand out all its broken connections before it opens a new one. So a
// statement that is safe to repeat is repeated at most as often as there are open connections.
func (s *rows) repeat(u *use, st statement) (string, error) {
	broken, refused := s.db.open(), -1
	for {
		text, err := s.once(u, st)
		switch {
		case err == nil, u.ctx.Err() != nil:
			return text, err
		case isReadOnly(err):
			if refused < 0 {
				refused = s.db.idle() + 1
			}
			if refused--; refused < 0 {
				return "", err
			}
		case !st.safe || broken <= 0 || !s.db.connectionBroke(err):
			return "", err
		default:
			broken--
		}
	}
}

// The method once runs a statement a single time. If the pool cannot open a connection for the statement, the
// result is a [*connectError]. This error says whether an earlier request had a connection.
func (s *rows) once(u *use, st statement) (string, error) {
	u.users.Add(1)
	text, err := s.db.queryRow(u.ctx, u.end, st.sql, st.args)
	var connect *connectError
	switch {
	case errors.As(err, &connect):
		connect.before = s.connected.Load()
		u.unconnected.Store(true)
	case errors.As(err, new(*busyError)):
		u.unconnected.Store(true)
	default:
		s.connected.Store(true)
		u.unconnected.Store(false)
	}
	return text, err
}

// A use is one request that the [engine.Gate] has admitted. The gate counts the request until it no longer
// occupies a connection. That can take longer than the context of the request, because some drivers do not
// return when a context ends. Such a request counts as not answered.
type use struct {
	ctx         context.Context
	pass        engine.Pass
	users       atomic.Int32
	unconnected atomic.Bool // whether the last attempt got no connection, so that no server has answered
}

func (u *use) end() {
	if u.users.Add(-1) == 0 {
		u.pass.Leave(u.ctx.Err() == nil && !u.unconnected.Load())
	}
}
