package pglease_test

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
	"github.com/fencedlease/lease/pglease"
)

// frozen returns the address of a server that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // connections stay in its backlog
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// behindFrozen returns the connection string of a new database with the tables, with a frozen server first.
func behindFrozen(t *testing.T) string {
	t.Helper()
	url := shared.URL(shared.Database(t, pglease.Tables))
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

// If the pool connects while the store tries frozen hosts over its second pool, a request goes on over the first one.
func TestPoolConnectsLate(t *testing.T) {
	t.Parallel()
	url := shared.URL(shared.Database(t, pglease.Tables))
	hosts := shared.Addr() + strings.Replace(","+shared.Addr(), "127.0.0.1", "127.0.0.2", 1) + strings.Replace(","+shared.Addr(), "127.0.0.1", "127.0.0.3", 1)
	p := pool(t, strings.Replace(url, shared.Addr(), hosts, 1), func(c *pgxpool.Config) {
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < time.Minute { // for the second pool
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(time.Second) // a real engine; after that time, the store tries its second pool
			return dial(ctx, network, address)
		}
	})
	do(t, store(t, p, nil).Authority(), "a", acquire(idA, time.Minute), 0) // before the second pool has given up three hosts
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

// The Close of a store that [open.Store] has opened does not wait for a server that is frozen, although pgx
// waits 15 s for the end of each request that was canceled.
func TestFrozenServerIsLeft(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	url := server.URL(server.Database(t, pglease.Tables))
	for _, limit := range []string{"", "&connect_timeout=2"} {
		s, err := open.Store(t.Context(), url+limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Inspect(t.Context(), s.Authority(), "a"); err != nil {
			t.Fatal(err)
		}
		server.Freeze()
		for range 2 { // over the connection that there is, and over one that cannot be made
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := lease.Inspect(ctx, s.Authority(), "a"); err == nil {
				t.Error("the frozen server has answered")
			}
			cancel()
		}
		began := time.Now()
		s.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q: Close took %v", limit, took)
		}
		server.Resume()
	}
}

// The Close of a Store ends its attempts to connect, however many hosts are frozen.
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	hosts := strings.Join([]string{frozen(t), frozen(t), frozen(t), frozen(t)}, ",")
	s, err := pglease.New(pool(t, "postgres://"+hosts+"/postgres"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := lease.Inspect(ctx, s.Authority(), "a"); err == nil {
		t.Error("a frozen host has answered")
	}
	began := time.Now()
	s.Close()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Close took %v", took)
	}
}
