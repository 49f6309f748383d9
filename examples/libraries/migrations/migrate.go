package migrations

import (
	"context"
	"errors"

	"github.com/golang-migrate/migrate/v4"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// migrateUp waits for the lease and then runs the migrations. The parameter named open is a function that
// returns a new Migrate, and migrateUp closes this Migrate.
func migrateUp(ctx context.Context, l lease.Lease, open func() (*migrate.Migrate, error)) error {
	return session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
		m, err := open() // under the lease, because it creates the table of the versions
		if err != nil {
			return err
		}
		defer m.Close()
		defer context.AfterFunc(ctx, func() { m.GracefulStop <- true })()
		if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
			return err
		}
		return context.Cause(ctx) // after a GracefulStop, Up returns nil
	}, nil)
}
