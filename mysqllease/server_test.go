package mysqllease_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease/internal/check/mysqlserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
)

var (
	idA, idB                        = shorthand.IDA, shorthand.IDB
	acquire, renew, release         = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do, says, eventually, permanent = shorthand.Do, shorthand.Says, shorthand.Eventually, shorthand.Permanent
	url                             = mysqlserver.URL
)

// The type server adds the driver to a server. The tests of MySQL instead of MariaDB need the environment variable MYSQLD.
type server struct{ *mysqlserver.Server }

var (
	shared    server // of all tests that do not harm their server
	databases atomic.Int64
)

func TestMain(m *testing.M) {
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		shared.Server, err = mysqlserver.New(dir)
		return func() { shared.Kill() }, err
	})
}

// ownServer starts a server that ends with the test.
func ownServer(t testing.TB, settings ...string) server {
	t.Helper()
	return server{mysqlserver.NewFor(t, settings...)}
}

func (s server) config(database string) *mysql.Config {
	c, _ := mysqllease.ConfigOf(url(s.Addr(), database))
	return c
}

// database makes a database with the tables.
func (s server) database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("d", databases.Add(1))
	s.exec(t, "mysql", "create database "+name)
	if err := mysqllease.Migrate(context.Background(), s.config(name)); err != nil {
		t.Fatal(err)
	}
	return name
}

func (s server) db(t testing.TB, database string) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(s.config(database))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func (s server) exec(t testing.TB, database, query string, args ...any) {
	t.Helper()
	if _, err := s.db(t, database).Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (s server) store(t testing.TB, database string, o *mysqllease.Options) *mysqllease.Store {
	t.Helper()
	st, err := mysqllease.New(s.config(database), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}
