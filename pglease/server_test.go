package pglease_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/pglease/internal/pgserver"
)

var (
	idA, idB                = enginetest.IDA, enginetest.IDB
	acquire, renew, release = enginetest.Acquire, enginetest.Renew, enginetest.Release
	do, eventually, within  = enginetest.Do, enginetest.Eventually, enginetest.Within
	ownServer               = pgserver.NewFor
)

// says fails the test if the text of err lacks one of the words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	enginetest.Says(t, err, nil, words...)
}

// shared is the server of all tests that do not harm their server.
var shared *pgserver.Server

func TestMain(m *testing.M) {
	if processes.Hold(openStore) {
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pglease")
		if err == nil {
			defer os.RemoveAll(dir)
			shared, err = pgserver.New(dir, "fsync=off")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "these tests need PostgreSQL 14 or newer: ", err)
			return 1
		}
		defer shared.Stop()
		return m.Run()
	}())
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
