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

// suites describes the suites for stores that open makes. If connect is not nil, it makes a store whose
// statements go through transmit.
func suites(t *testing.T, database string, open func(testing.TB) enginetest.Store, connect func(testing.TB, leasetest.Transmit) enginetest.Store) enginetest.Suites {
	o := leasetest.Options{
		Unit: 500 * time.Millisecond, // a Session waits two Units for an answer, so a server may stall for a second
		Can:  leasetest.Everything,
		Lacks: []string{"CanServeOldVersions", "Options.Store.Forget", "Options.Store.LoseWatches",
			"Options.Store.StepClock", "Options.Authority.Put"},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	if connect == nil {
		o.Lacks = append(o.Lacks, "Options.Store.Connect", "Options.Authority.Connect") // TestSQLConformance sets them
	} else {
		o.Lacks = append(o.Lacks, "a method Watch")
	}
	return enginetest.Suites{Options: o, Open: open, Connect: connect, Corrupt: func(t testing.TB, name string) { // as an operator can do by hand
		shared.Exec(t, database, "update lease set id = null where name = '"+strings.ReplaceAll(name, "'", "''")+"'")
	}}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	names := []string{"Store", "Authority", "Lease"}
	if testing.Short() {
		names = names[:1] // authorities and holders depend little on the store
	}
	database := shared.Database(t, pglease.Tables)
	p := pool(t, shared.URL(database), func(c *pgxpool.Config) { c.MaxConns = 64 }) // enough for all tests at once
	suites(t, database, func(t testing.TB) enginetest.Store { return store(t, p, nil) }, nil).Run(t, names...)
}

// The suites also run over database/sql, which cannot watch. With -short, only the suite of the store runs.
func TestSQLConformance(t *testing.T) {
	t.Parallel()
	names := []string{"Store", "Authority"}
	if testing.Short() {
		names = names[:1] // the statements are those of the other test
	}
	database := shared.Database(t, pglease.Tables)
	open := func(t testing.TB, db *sql.DB) enginetest.Store {
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
	suites(t, database, func(t testing.TB) enginetest.Store { return open(t, db) }, func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
		config, err := pgx.ParseConfig(shared.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(linked.Connector(transmit, stdlib.GetConnector(*config)))
		t.Cleanup(func() { db.Close() })
		return open(t, db)
	}).Run(t, names...)
}
