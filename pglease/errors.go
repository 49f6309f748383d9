package pglease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

const (
	serializationFailure    = "40001"
	deadlockDetected        = "40P01"
	invalidText             = "22P02"
	adminShutdown           = "57P01"
	crashShutdown           = "57P02"
	cannotConnectNow        = "57P03"
	undefinedTable          = "42P01"
	undefinedColumn         = "42703"
	insufficientPrivilege   = "42501"
	badPassword             = "28P01"
	badAuthorization        = "28000"
	invalidCatalogName      = "3D000"
	invalidSchemaName       = "3F000"
	lockNotAvailable        = "55P03"
	readOnlySQLTransaction  = "25006"
	untranslatableCharacter = "22P05"
	tooManyConnections      = "53300"
	protocolViolation       = "08P01"
	invalidSQLStatementName = "26000"
	duplicateStatement      = "42P05"
)

// sqlState returns the SQLSTATE of an error of pgx or lib/pq, or "" if the server did not send the error.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// A connectError reports that the client got no connection to the server. The request was not sent.
type connectError struct {
	err    error
	before bool // an earlier request got a connection, so the connection string is correct

	unbounded bool // the time of an attempt to connect may be unlimited
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// A busyError reports that a request got no connection in time.
type busyError struct {
	size    int  // connections of the pool; 0 if unknown
	sent    bool // the request was possibly sent after all
	renewal bool // the request waited for other renewals
	err     error
}

func (e *busyError) Error() string {
	if e.renewal {
		return "other renewals are under way: " + e.err.Error()
	}
	return fmt.Sprintf("all %d connections of the pool are in use: %v", e.size, e.err)
}

func (e *busyError) Unwrap() []error {
	if e.sent {
		return []error{e.err}
	}
	return []error{lease.ErrUnsent, e.err}
}

// describeError adds advice and the name of the lease to an error, and marks the error with [lease.Permanent]
// if no retry can succeed. describeError returns [lease.ErrConflict] as it is.
func describeError(what, name string, err error) error {
	if err == lease.ErrConflict {
		return err
	}
	advice, permanent := advise(err)
	return engine.WithAdvice(fmt.Errorf("pglease: %s %q: %w", what, name, err), advice, permanent)
}

// The function advise returns a text that says how to fix the cause of an error. The result permanent is true
// if every retry fails with the same error until a person has fixed the cause.
func advise(err error) (advice string, permanent bool) {
	if isReadOnly(err) {
		return "the server is read-only or a standby: connect to the primary, with target_session_attrs=read-write", false
	}
	switch sqlState(err) {
	case undefinedTable:
		return "call pglease.Migrate, or run tables.sql once, or name the schema of the tables: Options.Schema", true
	case undefinedColumn:
		return "the tables are older than this library: call pglease.Migrate or run tables.sql, which keep the leases", true
	case insufficientPrivilege:
		return "as the owner of the tables: grant select, insert, update on lease_row, lease_mark to the user, and grant select, update on lease_floor", true
	case badPassword, badAuthorization, invalidCatalogName:
		return "correct the connection string", true
	case untranslatableCharacter:
		return "the database needs the encoding UTF8", true
	case tooManyConnections:
		return "raise max_connections, or make the pool smaller", false
	case cannotConnectNow, adminShutdown, crashShutdown:
		return "the server is starting or stopping: try again", false
	case protocolViolation, invalidSQLStatementName, duplicateStatement:
		return poolerAdvice, false
	case "":
		return adviseSilence(err)
	}
	return "", false
}

const poolerAdvice = "does a pooler share connections between transactions? Then lib/pq needs binary_parameters=yes, and pgx default_query_exec_mode=exec"

// The advice for a request that got no connection.
const (
	beforeAdvice  = "no connection, though there was one before: check that the server is up. If it is up, it is overloaded, or this process was paused"
	connectAdvice = "no connection: check that the server is up and that the connection string is correct"
	timeoutAdvice = ". So that a frozen server does not keep the driver from trying the next one, set connect_timeout=2 in the connection string"
)

// adviseSilence is like advise, but for errors that did not come from the server.
func adviseSilence(err error) (advice string, permanent bool) {
	var busy *busyError
	var connect *connectError
	switch {
	case errors.As(err, new(*lease.PermanentError)):
		return "", true
	case errors.As(err, new(*panicError)):
		return poolerAdvice, false
	case errors.Is(err, sql.ErrNoRows):
		return "lease_floor has no row: call pglease.Migrate, or run tables.sql", true
	case errors.Is(err, lease.ErrClosed), errors.Is(err, context.Canceled), errors.As(err, new(*engine.FullError)):
		return "", false
	case errors.As(err, &busy):
		return "give leases a pool of their own, or a larger one", false
	case errors.As(err, &connect):
		advice = connectAdvice
		if connect.before {
			advice = beforeAdvice
		}
		if connect.unbounded && errors.Is(err, context.DeadlineExceeded) {
			advice += timeoutAdvice
		}
		return advice, false
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: another transaction has locked the row (in pg_stat_activity its wait_event_type is Lock), a commit waits for a synchronous standby (its wait_event is SyncRep), or the server is overloaded or down", false
	}
	return "no answer: check that the server is up", false
}

// schemaSQL is the SQL that returns the version of the tables. On a read-only server, the cast to integer in
// this SQL fails. So even a statement that writes nothing, such as a list, returns an error there.
const schemaSQL = `(case current_setting('transaction_read_only') when 'on' then '` + readOnlyText + `' else f.schema::text end)::integer`

const readOnlyText = "lease: the server is read-only"

// mustLeave reports whether err shows that the server of a connection can no longer store leases, because it
// has become read-only or a standby, or is stopping. Such a server can keep its connections open for hours
// while new connections lead to another server, so the Store closes all connections.
func mustLeave(err error) bool {
	switch sqlState(err) {
	case adminShutdown, crashShutdown, cannotConnectNow:
		return true
	}
	return isReadOnly(err)
}

// isReadOnly reports whether a server is read-only or a standby, and has therefore certainly refused a
// statement.
func isReadOnly(err error) bool {
	switch sqlState(err) {
	case readOnlySQLTransaction:
		return true
	case invalidText:
		return strings.Contains(err.Error(), readOnlyText)
	}
	return false
}
