package mysqllease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

var errReadOnly = errors.New("the server is read-only")

// The function number returns the number of an error from the server, or 0 for any other error.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

const deadlock = 1213

// The function conflicts reports whether a statement has certainly written nothing, because another
// transaction prevented it. The other transaction had inserted the same row (1062), was in a deadlock with
// the statement, had locked a row for too long (1205), or had changed a row since the statement read the row
// (1020).
func conflicts(err error) bool {
	switch number(err) {
	case 1062, deadlock, 1205, 1020:
		return true
	}
	return false
}

// isReadOnly reports whether the server has certainly refused a statement because the server is read-only or
// a replica.
func isReadOnly(err error) bool {
	switch number(err) {
	case 1290, 1792, 1836:
		return true
	}
	return errors.Is(err, errReadOnly)
}

// tooLarge reports whether a statement was certainly not carried out because it was larger than
// max_allowed_packet.
func tooLarge(err error) bool { return number(err) == 1153 || errors.Is(err, mysql.ErrPktTooLarge) }

// mustLeave reports whether the connection must be closed after an error. One reason is that the server is
// read-only or is stopping (1053). The other reason is that the statement was too large (1153), after which
// the server closes the connection.
func mustLeave(err error) bool { return isReadOnly(err) || number(err) == 1053 || tooLarge(err) }

// connectionBroke reports whether a connection broke, so that the outcome of its request is unknown. A server
// also sends such an error when it stops (1053), or when an operator ends the connection (1927).
func connectionBroke(err error) bool {
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows), errors.As(err, new(*lease.PermanentError)), errors.Is(err, lease.ErrUnsent), errors.Is(err, errReadOnly):
		return false
	}
	n := number(err)
	return n == 0 || n == 1053 || n == 1927
}

// describeError adds the name and advice to an error, and marks the error with [lease.Permanent] if no retry
// can succeed. It does not change a [lease.ErrConflict].
func (s *Store) describeError(what, name string, err error) error {
	if err == lease.ErrConflict {
		return err
	}
	if s.closed.Load() {
		err = errors.Join(lease.ErrClosed, err)
	}
	advice, permanent := advise(err)
	return engine.WithAdvice(fmt.Errorf("mysqllease: %s %q: %w", what, name, err), advice, permanent)
}

// The function advise returns advice for the user about an error, and reports whether the error will recur
// until somebody follows the advice.
func advise(err error) (advice string, permanent bool) {
	if isReadOnly(err) {
		return "connect to the primary", false
	}
	switch number(err) {
	case 1146, 1305, 1356:
		return "call mysqllease.Migrate, or run tables.sql", true
	case 1142, 1143, 1370:
		return "the end of tables.sql lists the privileges that a program needs", true
	case 1044, 1045, 1049, 1698:
		return "correct the user, the password or the database", true
	case 1665:
		return "set binlog_format to ROW or MIXED", true
	case 1040, 1203, 1226:
		return "raise max_connections or max_user_connections, or lower Options.Connections", false
	case 1153:
		return "raise max_allowed_packet", true
	case 1205:
		return "another transaction has locked the row: look at information_schema.innodb_trx", false
	case 1053:
		return "the server is stopping: try again", false
	}
	switch {
	case errors.As(err, new(*lease.PermanentError)):
		return "", true
	case errors.Is(err, sql.ErrNoRows):
		return "lease_floor has no row: call mysqllease.Migrate, or run tables.sql", true
	case errors.Is(err, lease.ErrClosed), errors.Is(err, context.Canceled), errors.As(err, new(*engine.FullError)):
		return "", false
	case errors.As(err, new(*connectError)):
		return "check that the server is up, and that the host and the port are correct", false
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: another transaction has locked the row, a commit waits for a replica, or the server is overloaded or down", false
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn):
		return "the connection broke: check that the server is up", false
	}
	return "", false
}
