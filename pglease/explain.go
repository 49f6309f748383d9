package pglease

import (
	"context"
	"errors"
	"fmt"
)

// The SQLSTATEs that something can be done about.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	noTime               = "22007"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	notYet               = "57P03"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	noPrivilege          = "42501"
	badPassword          = "28P01"
	badAuthorization     = "28000"
	noDatabase           = "3D000"
	readOnly             = "25006"
	noCharacter          = "22P05"
	tooManyConnections   = "53300"
)

// sqlState returns the SQLSTATE of an error of pgx or lib/pq, and "" if the server sent none.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// explain adds to an error which lease it is about and what can be done.
func explain(what, name string, err error) error {
	if advice := advice(err); advice != "" {
		return fmt.Errorf("pglease: %s %q: %w; %s", what, name, err, advice)
	}
	return fmt.Errorf("pglease: %s %q: %w", what, name, err)
}

func advice(err error) string {
	switch sqlState(err) {
	case undefinedTable, undefinedColumn:
		return "run the statements of pglease.Schema once, or name the schema they were run in: Options.Schema"
	case noPrivilege:
		return "as their owner: grant select, insert, update on lease_row, lease_mark to the user, and grant select, update on lease_floor"
	case badPassword, badAuthorization, noDatabase:
		return "put the connection string right"
	case readOnly:
		return "leases are kept on the primary: connect to it, with target_session_attrs=read-write"
	case noCharacter:
		return "the database needs the encoding UTF8"
	case tooManyConnections:
		return "raise max_connections, or make the pool smaller"
	case notYet, adminShutdown, crashShutdown:
		return "the server is starting or stopping: try again"
	case "":
		if !errors.Is(err, context.Canceled) {
			return "no answer: see that the server is up and the connection string right"
		}
	}
	return ""
}
