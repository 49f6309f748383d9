package pglease_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

var (
	idA, idB                = shorthand.IDA, shorthand.IDB
	acquire, renew, release = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do, eventually, within  = shorthand.Do, shorthand.Eventually, shorthand.Within
	ownServer               = pgserver.NewFor
)

// says fails the test if the text of err lacks one of the words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	shorthand.Says(t, err, nil, words...)
}

// shared is the server of all tests that do not harm their server.
var shared *pgserver.Server

func TestMain(m *testing.M) {
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		if shared, err = pgserver.New(dir, "fsync=off"); err != nil {
			return nil, fmt.Errorf("these tests need PostgreSQL 14 or newer: %w", err)
		}
		return shared.Stop, nil
	})
}

// database returns the URL of a new database with the tables of the leases, and a pool. It runs the SQL there.
func database(t testing.TB, sql string, configure ...func(*pgxpool.Config)) (url string, p *pgxpool.Pool) {
	t.Helper()
	name := shared.Database(t, pglease.Tables)
	shared.Exec(t, name, sql)
	return shared.URL(name), pool(t, shared.URL(name), configure...)
}

func pool(t testing.TB, url string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range configure {
		f(config)
	}
	p, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func store(t testing.TB, p *pgxpool.Pool, o *pglease.Options) *pglease.Store {
	t.Helper()
	s, err := pglease.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
