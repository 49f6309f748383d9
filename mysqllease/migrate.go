package mysqllease

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease"
)

// Tables is the SQL that creates the tables. It is the text of the file tables.sql, and has "delimiter" lines
// for the program mysql.
//
//go:embed tables.sql
var Tables string

// Migrate creates the tables, or updates older tables without changing the leases and their tokens. Every
// process may call Migrate when it starts, because concurrent calls run one after the other, and tables that
// are up to date are not changed. The database that c names must exist. If ctx ends, some of the tables may
// be missing, and the next call creates them.
func Migrate(ctx context.Context, c *mysql.Config) error {
	if c == nil {
		return &lease.FieldError{Field: "Migrate.c", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	connector, err := newConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := migrate(ctx, db); err != nil {
		advice := ""
		switch number(err) {
		case 1419:
			advice = "; the server has a binary log: set log_bin_trust_function_creators, or run Migrate as a user with SUPER"
		case 1142, 1044, 1370, 1227:
			advice = "; the beginning of tables.sql lists the privileges that Migrate needs"
		}
		return fmt.Errorf("mysqllease: migrate: %w%s", err, advice)
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // db is closed later, which releases the lock of get_lock
	var locked sql.NullInt64
	if err := conn.QueryRowContext(ctx, "select get_lock(concat('lease ', left(sha2(database(), 256), 40)), 60)").Scan(&locked); err != nil {
		return err
	}
	if locked.Int64 != 1 {
		return errors.New("another process has been making the tables for a minute")
	}
	var version int
	if err := conn.QueryRowContext(ctx, "select version from lease_floor where one = 1").Scan(&version); err == nil && version >= tablesVersion {
		return nil
	}
	for _, statement := range statements(Tables) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// The function statements splits a script into statements. The script can contain "delimiter" lines for the
// program mysql. Each delimiter in the script must be at the end of a line or before a comment.
func statements(script string) (all []string) {
	delimiter, statement := ";", ""
	for line := range strings.Lines(script) {
		code, _, _ := strings.Cut(line, "-- ")
		code = strings.TrimSpace(code)
		if next, found := strings.CutPrefix(code, "delimiter "); found {
			delimiter = next
			continue
		}
		last, ends := strings.CutSuffix(code, delimiter)
		if statement += last + "\n"; ends {
			all = append(all, statement)
			statement = ""
		}
	}
	return all
}
