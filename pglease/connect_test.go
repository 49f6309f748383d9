package pglease_test

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// frozen returns the address of a server that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); accepting.Wait() })
	return l.Addr().String()
}

// behindFrozen returns the connection string of a new database with the tables, with a frozen server first.
func behindFrozen(t *testing.T) string {
	t.Helper()
	url := shared.URL(shared.Database(t))
	return strings.Replace(url, "@", "@"+frozen(t)+",", 1)
}

// A frozen server at the head of the connection string, with no connect_timeout, keeps requests and
// watches from the next server only for a few seconds, even if each request has less time than that.
func TestFrozenHostIsPassed(t *testing.T) {
	t.Parallel()
	var prepared atomic.Bool
	p := pool(t, behindFrozen(t), func(c *pgxpool.Config) {
		c.AfterConnect = func(context.Context, *pgx.Conn) error { prepared.Store(true); return nil }
	})
	s := store(t, p, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for { // as a session does with a lease of 6 s, whose requests have a second each
		request, end := context.WithTimeout(ctx, time.Second)
		_, err := s.Authority().Do(request, "a", acquire(idA, time.Minute))
		end()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("acquire: %v", err)
		}
	}
	if _, err := s.Watch(ctx, "a"); err != nil {
		t.Errorf("watch: %v", err)
	}
	if !prepared.Load() {
		t.Error("AfterConnect of the pool was not called")
	}
}

// With database/sql, the store cannot reach the settings of the driver, so its error names the setting.
func TestFrozenHostIsExplained(t *testing.T) {
	t.Parallel()
	url := behindFrozen(t)
	for _, limit := range []string{"", "&connect_timeout=1"} {
		db, err := sql.Open("pgx", url+limit)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, err = lease.Inspect(ctx, s.Authority(), "a")
		if limit == "" {
			says(t, err, "no connection", "set connect_timeout=2 in the connection string")
		} else if err != nil {
			t.Errorf("with a limit: %v", err)
		}
	}
}
