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

// A suited store is a Store or an SQLStore.
type suited interface {
	lease.Store
	Authority() lease.Authority
	Close()
}

// suites returns the options of the suites, and runs those for stores and for authorities. The function
// open returns a store. If connect is not nil, it returns a store whose statements go through transmit.
func suites(t *testing.T, database string, open func(testing.TB) suited, connect func(testing.TB, leasetest.Transmit) suited) *leasetest.Options {
	corrupt := func(t testing.TB, name string) { // as an operator can do by hand
		shared.Exec(t, database, "update lease set id = null where name = $1", name)
	}
	o := &leasetest.Options{
		Unit: unit,
		Can:  leasetest.Everything,
		Lacks: []string{"CanServeOldVersions", "exact time", "Options.Store.Forget", "Options.Store.LoseWatches",
			"Options.Store.StepClock", "Options.Authority.Put"},
		Store: leasetest.StoreHooks{
			Reopen: func(t testing.TB, s lease.Store) lease.Store {
				s.(suited).Close()
				return open(t)
			},
			Another: func(t testing.TB, _ lease.Store) lease.Store { return open(t) },
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return open(t).Authority() },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority { return open(t).Authority() },
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, name) },
		},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	if connect == nil {
		o.Lacks = append(o.Lacks, "Options.Store.Connect", "Options.Authority.Connect") // TestSQLConformance sets them
	} else {
		o.Lacks = append(o.Lacks, "a method Watch")
		o.Store.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Store { return connect(t, transmit) }
		o.Authority.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
			return connect(t, transmit).Authority()
		}
	}
	t.Run("Store", func(t *testing.T) {
		t.Parallel()
		leasetest.TestStore(t, func(t testing.TB) lease.Store { return open(t) }, o)
	})
	if testing.Short() && connect != nil {
		return o // the statements are those of the other test
	}
	t.Run("Authority", func(t *testing.T) {
		t.Parallel()
		leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return open(t).Authority() }, o)
	})
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	database := shared.Database(t)
	p := pool(t, shared.URL(database), func(c *pgxpool.Config) { c.MaxConns = 64 }) // enough for all tests at once
	o := *suites(t, database, func(t testing.TB) suited { return store(t, p, nil) }, nil)
	if testing.Short() {
		return // the behavior of holders depends little on the store
	}
	o.Lease.Authority = func(t testing.TB) lease.Authority { return store(t, p, nil).Authority() }
	t.Run("Lease", func(t *testing.T) {
		t.Parallel()
		leasetest.TestLease(t, newLease, &o)
	})
}

// The suites also run over database/sql, which cannot watch. With -short, these two tests run the suites
// that take less than a minute.
func TestSQLConformance(t *testing.T) {
	t.Parallel()
	database := shared.Database(t)
	open := func(t testing.TB, db *sql.DB) suited {
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	db, err := sql.Open("pgx", shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	suites(t, database, func(t testing.TB) suited { return open(t, db) }, func(t testing.TB, transmit leasetest.Transmit) suited {
		db := sql.OpenDB(linkedConnector{shared.URL(database), transmit})
		t.Cleanup(func() { db.Close() })
		return open(t, db)
	})
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
