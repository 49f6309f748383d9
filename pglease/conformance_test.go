package pglease_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

// runSuites runs the named suites for stores that open makes, or only the first of them with -short. If connect is
// not nil, it makes a store whose statements go through transmit.
func runSuites(t *testing.T, database string, open func(testing.TB) enginetest.Store, connect func(testing.TB, leasetest.Transmit) enginetest.Store, names ...string) {
	t.Parallel()
	o := leasetest.Options{
		Unit: 500 * time.Millisecond, // a Session waits two Units for an answer, so a server may stall for a second
		Can:  leasetest.Everything,
		Lacks: []string{"CanServeOldVersions", "Options.Store.Forget", "Options.Store.LoseWatches",
			"Options.Store.StepClock", "Options.Authority.Put"},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
		names = names[:1]
	}
	if connect == nil {
		o.Lacks = append(o.Lacks, "Options.Store.Connect", "Options.Authority.Connect") // TestSQLConformance sets them
	} else {
		o.Lacks = append(o.Lacks, "a method Watch")
	}
	enginetest.Suites{Options: o, Open: open, Connect: connect, Corrupt: func(t testing.TB, name string) { // as an operator can do by hand
		shared.Exec(t, database, "update lease set id = null where name = '"+strings.ReplaceAll(name, "'", "''")+"'")
	}}.Run(t, names...)
}

func TestConformance(t *testing.T) {
	database := shared.Database(t, pglease.Tables)
	p := pool(t, shared.URL(database), func(c *pgxpool.Config) { c.MaxConns = 64 }) // enough for all tests at once
	runSuites(t, database, func(t testing.TB) enginetest.Store { return store(t, p, nil) }, nil, "Store", "Authority", "Lease")
}

// The suites also run over database/sql, which cannot watch.
func TestSQLConformance(t *testing.T) {
	database := shared.Database(t, pglease.Tables)
	config, err := pgx.ParseConfig(shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	open := func(t testing.TB, db *sql.DB) enginetest.Store {
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	runSuites(t, database, func(t testing.TB) enginetest.Store { return open(t, db) }, func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
		db := sql.OpenDB(linked.Connector(transmit, stdlib.GetConnector(*config)))
		t.Cleanup(func() { db.Close() })
		return open(t, db)
	}, "Store", "Authority")
}
