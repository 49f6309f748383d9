// Package migrations contains the recipes of docs/holding.md for goose and golang-migrate. Its tests run them
// in several processes at once.
package migrations

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// gooseUp migrates the database. Every process can call it when it starts.
func gooseUp(ctx context.Context, l lease.Lease, db *sql.DB, files fs.FS) error {
	return session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
		p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
		if err != nil {
			return err
		}
		_, err = p.Up(ctx) // a process that had to wait finds nothing to do
		return err
	}, nil)
}
