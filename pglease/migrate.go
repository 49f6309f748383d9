package pglease

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/fields"
)

// Tables is the SQL that makes the tables, for tools that run migrations. Tables has the text of the file
// tables.sql, which is a single statement.
//
//go:embed tables.sql
var Tables string

// Migrate creates the tables, or updates older tables without losing the leases and their tokens. Every
// process may call Migrate when it starts, because concurrent calls run one after the other, and tables that
// are up to date are not changed. To update tables, Migrate must lock them, and it returns an error if
// another transaction prevents that for a second. The user of the pool must be the owner of the tables, and
// the schema in [Options].Schema must exist. Migrate ignores all other options.
func Migrate(ctx context.Context, pool *pgxpool.Pool, o *Options) error {
	if pool == nil {
		return fields.Missing("Migrate.pool")
	}
	return describeMigrationError(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return migrate(o, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		})
	}))
}

// MigrateSQL does the same as [Migrate], but through database/sql.
func MigrateSQL(ctx context.Context, db *sql.DB, o *Options) error {
	if db == nil {
		return fields.Missing("MigrateSQL.db")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return describeMigrationError(err)
	}
	err = migrate(o, func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return describeMigrationError(errors.Join(err, tx.Rollback()))
	}
	return describeMigrationError(tx.Commit())
}

func migrate(o *Options, exec func(query string, args ...any) error) error {
	if o != nil && o.Schema != "" {
		if err := exec("select set_config('search_path', $1, true)", quote(o.Schema)); err != nil {
			return err
		}
	}
	return exec(Tables)
}

func describeMigrationError(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch sqlState(err) {
	case insufficientPrivilege:
		advice = "; run Migrate as the owner of the tables"
	case lockNotAvailable:
		advice = "; another transaction uses the tables: try again when it has ended"
	case invalidSchemaName:
		advice = "; create the schema that Options.Schema names"
	}
	return fmt.Errorf("pglease: migrate: %w%s", err, advice)
}
