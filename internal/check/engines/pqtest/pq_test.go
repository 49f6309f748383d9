// Package pqtest tests pglease over lib/pq and behind pgbouncer. It is not in pglease, so that pglease
// does not require lib/pq.
package pqtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

var shared *pgserver.Server

func TestMain(m *testing.M) {
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		if shared, err = pgserver.New(dir, "fsync=off"); err != nil {
			return nil, fmt.Errorf("these tests need PostgreSQL 14 or newer: %w", err)
		}
		return shared.Stop, nil
	})
}

func open(t testing.TB, url string) *pglease.SQLStore {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func openPgx(t testing.TB, url string, o *pglease.Options) *pglease.Store {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s, err := pglease.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestConformance(t *testing.T) {
	url := shared.URL(shared.Database(t, pglease.Tables))
	o := &leasetest.Options{
		Unit: 400 * time.Millisecond,
		Store: leasetest.StoreHooks{
			Reopen:  func(t testing.TB, _ lease.Store) lease.Store { return open(t, url) },
			Another: func(t testing.TB, _ lease.Store) lease.Store { return open(t, url) },
		},
	}
	leasetest.TestStore(t, func(t testing.TB) lease.Store { return open(t, url) }, o)
}

func number(i int) lease.ID {
	return vectors.MustParseID(fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i+1))
}

// takeAndGive lets many clients acquire, renew and release leases at the same time.
func takeAndGive(t *testing.T, a lease.Authority) (failed []error) {
	t.Helper()
	errs := make(chan error, 20*9)
	shorthand.Together(20, 20, func(i int) {
		id, name := number(i), fmt.Sprint("näme ", i)
		for n := range 9 {
			req := []lease.Request{shorthand.Acquire(id, time.Minute), shorthand.Renew(id), shorthand.Release(id)}[n%3]
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if _, err := a.Do(ctx, name, req); err != nil {
				errs <- fmt.Errorf("%v %s: %w", req.Action, name, err)
			}
			cancel()
		}
	})
	close(errs)
	for err := range errs {
		failed = append(failed, err)
	}
	return failed
}

// Behind a pooler, both drivers work with the settings in the README, and with others the errors say what
// to set. A store that listens past the pooler gets signals.
func TestPooler(t *testing.T) {
	database := shared.Database(t, pglease.Tables)
	url := shared.Pooler(t)(database)
	direct, err := pgxpool.ParseConfig(shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	s := openPgx(t, url+"&default_query_exec_mode=exec", &pglease.Options{Listen: direct.ConnConfig})
	signals, err := s.Watch(t.Context(), "näme 7")
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]struct {
		authority lease.Authority
		works     bool
	}{
		"pgx, exec":                  {s.Authority(), true},
		"lib/pq, binary parameters":  {open(t, url+"&binary_parameters=yes").Authority(), true},
		"pgx, statements prepared":   {openPgx(t, url+"&pool_max_conns=20", nil).Authority(), false}, // more than the pooler has
		"lib/pq, no such parameters": {open(t, url).Authority(), false},
	} {
		t.Run(what, func(t *testing.T) {
			failed := takeAndGive(t, s.authority)
			t.Logf("%d of 180 requests failed", len(failed))
			if s.works && len(failed) > 0 {
				t.Error(failed[0])
			}
			said := strings.Contains(fmt.Sprint(failed), "lib/pq needs binary_parameters=yes, and pgx default_query_exec_mode=exec")
			if !s.works && !said {
				t.Errorf("no error says what to set: %v", failed)
			}
		})
	}
	if !shorthand.Within(signals, true) {
		t.Error("no signal, or the watch is lost")
	}
}
