package pglease

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open postgres:// URLs with [open.Store]. Settings that a URL leaves
// out are taken from PGPASSWORD and the other PG variables, or from ~/.pgpass.
func init() {
	open.Register("postgres", "postgres://[USER@]HOST[:PORT]/DATABASE", openURL)
	open.Register("postgresql", "", openURL)
}

// closeTimeout is how long the Close of an opened store waits for the server before it closes the
// connections. A pool by itself would wait for up to 15 s.
const closeTimeout = time.Second

type opened struct {
	*Store
	pool *pgxpool.Pool
	cut  context.CancelFunc
}

func (o opened) Close() error {
	defer o.cut()
	defer time.AfterFunc(closeTimeout, o.cut).Stop()
	o.Store.Close()
	o.pool.Close()
	return nil
}

func openURL(ctx context.Context, url string) (open.Leases, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, open.ErrMalformed
	}
	uncut, cut := context.WithCancel(context.Background())
	c.ConnConfig.DialFunc = until(uncut, c.ConnConfig.DialFunc)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		cut()
		return nil, err
	}
	s, err := New(pool, nil)
	if err != nil {
		pool.Close()
		cut()
		return nil, err
	}
	return opened{s, pool, cut}, nil
}

// The function until returns a DialFunc that uses dial to open connections. When ctx ends, these connections
// are closed, and from then on every attempt to dial fails.
func until(ctx context.Context, dial pgconn.DialFunc) pgconn.DialFunc {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		dialing, cancel := context.WithCancel(dialing)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		conn, err := dial(dialing, network, address)
		if err != nil {
			return nil, err
		}
		return &openConn{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
	}
}

// An openConn is a connection that is closed when a context ends, unless forget was called.
type openConn struct {
	net.Conn
	forget func() bool
}

func (c *openConn) Close() error {
	c.forget()
	return c.Conn.Close()
}
