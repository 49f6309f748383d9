package pglease

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fencedlease/lease/engine"
)

// A statement returns one row.
type statement struct {
	sql  string
	args []any
	dest []any // pointers, to which the values of the row are copied
	safe bool  // it may be carried out twice
}

// A database runs statements.
type database interface {
	// queryRow runs a statement once and scans its row into dest. It returns as soon as ctx is done, and
	// calls done when the connection is free again, which can be later. After an error, the statement can
	// still run, but nothing writes to dest. If [mustLeave] is true of the error, the connection is closed.
	queryRow(ctx context.Context, done func(), sql string, args, dest []any) error

	// open returns how many connections are open, or an upper bound of that number.
	open() int

	// idle returns how many connections are open and not in use, or an upper bound of that number.
	idle() int

	// connectionBroke reports whether err means that a connection broke, after which the outcome is unknown.
	connectionBroke(err error) bool
}

// read runs a statement that is safe to repeat, as soon as the gate lets it through.
func (s *rows) read(ctx context.Context, sql string, args, dest []any) error {
	return s.query(ctx, engine.Request{}, statement{sql, args, dest, true})
}

// query runs a statement as soon as the gate lets it through.
func (s *rows) query(ctx context.Context, r engine.Request, st statement) error {
	r.Urgent = r.Urgent || engine.IsUrgent(ctx)
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return &busyError{size: s.size, err: err}
	}
	return s.send(ctx, pass, st)
}

// send runs a statement that the gate has let through. One that is not safe is never repeated if a connection broke:
// the server might have carried it out, even if the driver says that it did not. After such an error, send removes
// broken connections from the pool, so that the next request is likely to get a working one.
func (s *rows) send(ctx context.Context, pass engine.Pass, st statement) error {
	u := &use{ctx: ctx, pass: pass}
	u.users.Store(1)
	defer u.end()
	err := s.repeat(u, st)
	if err != nil && ctx.Err() == nil && !st.safe && s.db.connectionBroke(err) {
		_ = s.repeat(u, statement{"select 1", nil, []any{new(int)}, true})
	}
	return err
}

// repeat runs a statement until it succeeds or must not be repeated. If a server refuses the statement because it is
// read-only, the statement is repeated over all idle connections, and then over a new one. A statement that is safe
// to repeat is also repeated if a connection broke: after a restart of the server, the pool can hand out all its
// broken connections before it opens a new one, so as many retries can be needed as there are open connections.
func (s *rows) repeat(u *use, st statement) error {
	broken, refused := s.db.open(), -1
	for {
		err := s.once(u, st)
		switch {
		case err == nil, u.ctx.Err() != nil:
			return err
		case isReadOnly(err):
			if refused < 0 {
				refused = s.db.idle() + 1
			}
			if refused--; refused < 0 {
				return err
			}
		case !st.safe || broken <= 0 || !s.db.connectionBroke(err):
			return err
		default:
			broken--
		}
	}
}

// once runs a statement once. If it cannot get a connection, it returns a [*connectError] that says whether an earlier
// request had one.
func (s *rows) once(u *use, st statement) error {
	u.users.Add(1)
	err := s.db.queryRow(u.ctx, u.end, st.sql, st.args, st.dest)
	var connect *connectError
	if errors.As(err, &connect) {
		connect.before = s.connected.Load()
	} else if !errors.As(err, new(*busyError)) {
		s.connected.Store(true)
	}
	return err
}

// A use leaves the gate when its request no longer occupies a connection. This can be after the end of the context,
// because some drivers do not return then. A request whose context has ended by then counts as not answered.
type use struct {
	ctx   context.Context
	pass  engine.Pass
	users atomic.Int32
}

func (u *use) end() {
	if u.users.Add(-1) == 0 {
		u.pass.Leave(u.ctx.Err() == nil)
	}
}
