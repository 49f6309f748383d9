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

// The function number returns the number of an error from the server, or 0 for any other error.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

const deadlock = 1213

// describeError adds the name and advice to an error, and marks the error with [lease.Permanent] if no retry
// can succeed. It does not change a [lease.ErrConflict].
func describeError(what, name string, err error) error {
	if err == lease.ErrConflict {
		return err
	}
	advice, permanent := advise(err)
	return engine.WithAdvice(fmt.Errorf("mysqllease: %s %q: %w", what, name, err), advice, permanent)
}

// The function advise returns advice for the user about an error, and reports whether the error will recur
// until somebody follows the advice.
func advise(err error) (advice string, permanent bool) {
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
	}
	switch {
	case errors.As(err, new(*lease.PermanentError)):
		return "", true
	case errors.Is(err, sql.ErrNoRows):
		return "lease_floor has no row: call mysqllease.Migrate, or run tables.sql", true
	case errors.Is(err, lease.ErrClosed), errors.Is(err, context.Canceled), errors.As(err, new(*engine.FullError)):
		return "", false
	case errors.Is(err, errNoConnection):
		return "check that the server is up, and that the host and the port are correct", false
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: another transaction has locked the row, a commit waits for a replica, or the server is overloaded or down", false
	case errors.Is(err, driver.ErrBadConn):
		return "the server is read-only, or closes its connections: connect to the primary", false
	case errors.Is(err, mysql.ErrInvalidConn):
		return "the connection broke: check that the server is up", false
	}
	return "", false
}
