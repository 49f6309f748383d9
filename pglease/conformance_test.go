package pglease_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

// unit is the Unit of the suites. A Session waits two Units for an answer, so a server on a busy
// machine may stall for a second.
const unit = 500 * time.Millisecond

func TestConformance(t *testing.T) {
	t.Parallel()
	database := shared.Database(t)
	url := shared.URL(database)
	p := pool(t, url, func(c *pgxpool.Config) { c.MaxConns = 64 }) // enough for all tests at once
	newStore := func(t testing.TB) lease.Store { return store(t, p, nil) }
	o := &leasetest.Options{
		Unit: unit,
		Can:  leasetest.Everything,
		Store: leasetest.StoreHooks{
			Reopen: func(t testing.TB, s lease.Store) lease.Store {
				s.(*pglease.Store).Close()
				return store(t, pool(t, url), nil)
			},
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, database, name) },
			Another: func(t testing.TB, _ lease.Store) lease.Store { return store(t, pool(t, url), nil) },
		},
		Authority: leasetest.AuthorityHooks{
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, database, name) },
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return store(t, pool(t, url), nil).Authority() },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority {
				return store(t, pool(t, url), nil).Authority()
			},
		},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	authority := func(t testing.TB) lease.Authority { return store(t, p, nil).Authority() }
	for what, test := range map[string]func(t *testing.T){
		"Store":     func(t *testing.T) { leasetest.TestStore(t, newStore, o) },
		"Authority": func(t *testing.T) { leasetest.TestAuthority(t, authority, o) },
		"Lease": func(t *testing.T) {
			held := *o
			held.Lease.Authority = authority
			leasetest.TestLease(t, newLease, &held)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// corrupt removes the ID of a held lease, as an operator can do by hand.
func corrupt(t testing.TB, database, name string) {
	shared.Exec(t, database, "update lease set id = null where name = $1", name)
}

// A linkedConnector makes connections whose statements go through transmit.
type linkedConnector struct {
	url      string
	transmit leasetest.Transmit
}

func (c linkedConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (c linkedConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.url)
	if err != nil {
		return nil, err
	}
	return linkedConn{conn.(*stdlib.Conn), c.transmit}, nil
}

type linkedConn struct {
	*stdlib.Conn
	transmit leasetest.Transmit
}

// QueryContext sends a statement through transmit. An error of the database is an answer.
func (c linkedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	lost := c.transmit(ctx, func() error {
		rows, err = c.Conn.QueryContext(ctx, query, args)
		return nil
	})
	if lost != nil && rows != nil {
		rows.Close()
	}
	if lost != nil {
		return nil, lost
	}
	return rows, err
}

// ExecContext sends a statement through transmit. An error of the database is an answer.
func (c linkedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (done driver.Result, err error) {
	lost := c.transmit(ctx, func() error {
		done, err = c.Conn.ExecContext(ctx, query, args)
		return nil
	})
	if lost != nil {
		return nil, lost
	}
	return done, err
}

// newLease makes a holder for the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Authority, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// The suites also run over database/sql, which cannot watch.
func TestSQLConformance(t *testing.T) {
	t.Parallel()
	database := shared.Database(t)
	db, err := sql.Open("pgx", shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	newStore := func(t testing.TB) *pglease.SQLStore {
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	connect := func(t testing.TB, transmit leasetest.Transmit) *pglease.SQLStore {
		db := sql.OpenDB(linkedConnector{shared.URL(database), transmit})
		t.Cleanup(func() { db.Close() })
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := &leasetest.Options{
		Unit: unit,
		Store: leasetest.StoreHooks{
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Store { return connect(t, transmit) },
			Reopen:  func(t testing.TB, _ lease.Store) lease.Store { return newStore(t) },
			Another: func(t testing.TB, _ lease.Store) lease.Store { return newStore(t) },
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, database, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
				return connect(t, transmit).Authority()
			},
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return newStore(t).Authority() },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority { return newStore(t).Authority() },
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, database, name) },
		},
	}
	t.Run("Store", func(t *testing.T) {
		t.Parallel()
		leasetest.TestStore(t, func(t testing.TB) lease.Store { return newStore(t) }, o)
	})
	t.Run("Authority", func(t *testing.T) {
		t.Parallel()
		leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return newStore(t).Authority() }, o)
	})
}
