package pglease

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open postgres:// with [open.Store]. What the URL leaves out comes from
// PGPASSWORD and the other PG variables, or ~/.pgpass.
func init() {
	open.Register("postgres", "postgres://[USER@]HOST[:PORT]/DATABASE", openURL)
	open.Register("postgresql", "", openURL)
}

type opened struct {
	*Store
	pool *pgxpool.Pool
}

func (o opened) Close() error {
	o.Store.Close()
	o.pool.Close()
	return nil
}

func openURL(ctx context.Context, url string) (open.Leases, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, open.ErrMalformed
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := New(pool, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return opened{s, pool}, nil
}
