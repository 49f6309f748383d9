package pglease_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/pglease"
)

// unit is the one of the suites: a renewal takes some milliseconds on a busy machine.
const unit = 150 * time.Millisecond

func TestConformance(t *testing.T) {
	url := shared.url(shared.database(t))
	p := pool(t, url)
	newStore := func(t testing.TB) lease.Store { return store(t, p, nil) }
	o := &leasetest.Options{
		Unit: unit, Lacks: leasetest.Forgetting,
		Reopen: func(t testing.TB, s lease.Store) lease.Store {
			s.(*pglease.Store).Close()
			return store(t, pool(t, url), nil)
		},
	}
	t.Run("Store", func(t *testing.T) { leasetest.TestStore(t, newStore, o) })
	t.Run("Authority", func(t *testing.T) {
		leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return store(t, p, nil).Authority() }, o)
	})
}

// The same over database/sql, which cannot watch.
func TestSQLConformance(t *testing.T) {
	db, err := sql.Open("pgx", shared.url(shared.database(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	newStore := func(t testing.TB) lease.Store {
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	leasetest.TestStore(t, newStore, &leasetest.Options{Unit: unit, Lacks: leasetest.Forgetting | leasetest.Watching,
		Reopen: func(t testing.TB, _ lease.Store) lease.Store { return newStore(t) }})
}
