package pglease_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// An error names the lease and says what to do, for a request and for a watch. Only an error whose cause
// no retry can remove is permanent.
func TestErrorsSayWhatToDo(t *testing.T) {
	changed := func(sql string) string {
		database := shared.Database(t, pglease.Tables)
		shared.Exec(t, database, sql)
		return shared.URL(database)
	}
	granted := shared.Database(t, pglease.Tables)
	shared.Exec(t, granted, `create role "none_`+granted+`" login`)
	latin := shared.Name()
	shared.Exec(t, "postgres", "create database "+latin+" template template0 encoding latin1 locale 'C'")
	says(t, pglease.Migrate(t.Context(), pool(t, shared.URL(latin)), nil), "encoding LATIN1", "must have UTF8")
	shared.Exec(t, latin, strings.Replace(pglease.Tables, "<> 'UTF8'", "= ''", 1)) // by an operator, nevertheless
	for what, s := range map[string]struct {
		url       string
		permanent bool
		says      string
	}{
		"no tables":           {shared.URL("postgres"), true, "call pglease.Migrate"},
		"no permission":       {strings.Replace(shared.URL(granted), "postgres@", "none_"+granted+"@", 1), true, "grant select, insert, update on lease_row"},
		"no database":         {shared.URL("nowhere"), true, "connection string"},
		"a column is missing": {changed("alter table lease_row drop column signalled cascade"), true, "call pglease.Migrate or run tables.sql, which keep the leases"},
		"older tables":        {changed("update lease_floor set schema = 2"), true, "the tables have version 2, and must have 3 or newer"},
		"no floor":            {changed("alter table lease_floor disable trigger all; delete from lease_floor"), true, "lease_floor has no row"},
		"not UTF8":            {shared.URL(granted) + "&client_encoding=latin1", true, "the connection has the client_encoding LATIN1"},
		"a database in latin": {shared.URL(latin), true, "the database has the encoding LATIN1"},
		"a standby":           {shared.URL(granted) + "&default_transaction_read_only=on", false, "primary"},
		"no server":           {"postgres://postgres@127.0.0.1:1/x?sslmode=disable", false, "check that the server is up"},
	} {
		t.Run(what, func(t *testing.T) {
			st := store(t, pool(t, s.url), nil)
			var errs [3]error
			for range 2 { // the second acquire replaces a row
				if _, errs[0] = st.Authority().Do(t.Context(), "jobs/nightly", acquire(idA, time.Minute)); errs[0] != nil {
					break
				}
			}
			_, errs[1] = st.Watch(t.Context(), "jobs/nightly")
			for _, errs[2] = range st.List(t.Context(), "jobs/nightly") {
			}
			for i, err := range errs {
				if i == 2 && what == "a column is missing" {
					continue // a list does not need it
				}
				says(t, err, "jobs/nightly", s.says)
				if errors.As(err, new(*lease.PermanentError)) != s.permanent || lease.CodeOf(err).Refusal() {
					t.Errorf("permanent is %v of %v", !s.permanent, err)
				}
			}
		})
	}
	p := pool(t, shared.URL(granted))
	for _, wrong := range []string{"duration = '15 s'", "until = null", "until = '10000-01-02'"} {
		a := store(t, p, nil).Authority()
		do(t, a, wrong, acquire(idA, time.Minute), 0)
		if _, err := p.Exec(t.Context(), "update lease set "+wrong+" where name = $1", wrong); err != nil {
			t.Fatal(err)
		}
		_, err := a.Do(t.Context(), wrong, acquire(idB, time.Minute))
		if says(t, err, wrong, "correct it, or delete it"); lease.CodeOf(err) != lease.ErrCorrupt {
			t.Errorf("the code of %v", err)
		}
	}
}

// openers has a function for each kind of store, which opens it with connections of the given
// configuration. reset closes the idle connections.
var openers = map[string]func(t *testing.T, c *pgxpool.Config) (a lease.Authority, reset func()){
	"pgx": func(t *testing.T, c *pgxpool.Config) (lease.Authority, func()) {
		p, err := pgxpool.NewWithConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return store(t, p, nil).Authority(), p.Reset
	},
	"database/sql": func(t *testing.T, c *pgxpool.Config) (lease.Authority, func()) {
		db := stdlib.OpenDB(*c.ConnConfig)
		t.Cleanup(func() { db.Close() })
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s.Authority(), func() { db.SetMaxIdleConns(-1) }
	},
}

// ask sends one request with a time limit of 200 ms, which must make it fail.
func ask(t *testing.T, a lease.Authority, req lease.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := a.Do(ctx, "x", req)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a timeout", err)
	}
	return err
}

// An error says what the request waited for. It blames the connection string only if there has never been a
// connection.
func TestWhatIsWaitedForIsSaid(t *testing.T) {
	for kind, open := range openers {
		config := func(t *testing.T, url string) *pgxpool.Config { return pool(t, url).Config() }
		silent := func(_ context.Context, _, _ string) (net.Conn, error) {
			server, client := net.Pipe()
			t.Cleanup(func() { server.Close(); client.Close() })
			return client, nil
		}
		t.Run(kind+", a locked row", func(t *testing.T) {
			url := shared.URL(shared.Database(t, pglease.Tables))
			a, _ := open(t, config(t, url))
			do(t, a, "x", acquire(idA, time.Minute), 0)
			err := pgx.BeginFunc(t.Context(), pool(t, url), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "select from lease for update"); err != nil {
					return err
				}
				return ask(t, a, release(idA))
			})
			says(t, err, "; no answer in time: another transaction has locked the row")
		})
		t.Run(kind+", a server that has never answered", func(t *testing.T) {
			c := config(t, shared.URL("postgres"))
			c.ConnConfig.DialFunc = silent
			a, _ := open(t, c)
			says(t, ask(t, a, renew(idA)), "; no connection: check that the server is up and that the connection string is correct")
		})
		t.Run(kind+", a server that no longer answers", func(t *testing.T) {
			c := config(t, shared.URL(shared.Database(t, pglease.Tables)))
			dial := c.ConnConfig.DialFunc
			var stopped atomic.Bool
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				if stopped.Load() {
					return silent(ctx, network, address)
				}
				return dial(ctx, network, address)
			}
			a, reset := open(t, c)
			do(t, a, "x", acquire(idA, time.Minute), 0)
			stopped.Store(true)
			reset()
			says(t, ask(t, a, renew(idA)), "context deadline exceeded; no connection, though there was one before: check that the server is up. If it is up, it is overloaded, or this process was paused")
		})
	}
	t.Run("other users of the pool", func(t *testing.T) {
		_, p := database(t, "", func(c *pgxpool.Config) { c.MaxConns = 1 })
		a := store(t, p, nil).Authority()
		do(t, a, "x", acquire(idA, time.Minute), 0)
		conn, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		says(t, ask(t, a, renew(idA)), "all 1 connections of the pool are in use", "a pool of their own")
	})
}
