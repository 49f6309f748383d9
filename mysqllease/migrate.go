package mysqllease

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease/engine"
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
	connector, err := newConnector("Migrate", c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := migrate(ctx, db); err != nil {
		advice := ""
		switch number(err) {
		case 1419:
			advice = "the server has a binary log: set log_bin_trust_function_creators, or run Migrate as a user with SUPER"
		case 1142, 1044, 1370, 1227:
			advice = "the beginning of tables.sql lists the privileges that Migrate needs"
		}
		return engine.WithAdvice(fmt.Errorf("mysqllease: migrate: %w", err), advice, false)
	}
	return nil
}

// tablesVersion is the version of [Tables].
const tablesVersion = 2

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
	// The server itself finds the end of each statement. Only the program mysql needs the other delimiter.
	script := strings.NewReplacer("delimiter //", "", "delimiter ;", "", "//", ";").Replace(Tables)
	_, err = conn.ExecContext(ctx, script)
	return err
}
