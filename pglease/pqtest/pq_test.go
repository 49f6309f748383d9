// Package pqtest tests pglease over lib/pq and behind pgbouncer. Package pqtest is a separate
// module, so that pglease does not require lib/pq.
package pqtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/pglease/internal/pgserver"
)

var shared *pgserver.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pqtest")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if shared, err = pgserver.New(dir, "fsync=off"); err != nil {
			fmt.Fprintln(os.Stderr, "these tests need PostgreSQL 14 or newer: ", err)
			return 1
		}
		defer shared.Stop()
		return m.Run()
	}())
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

func openPgx(t testing.TB, url string) *pglease.Store {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s, err := pglease.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestConformance(t *testing.T) {
	url := shared.URL(shared.Database(t))
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
	return lease.MustParseID(fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i+1))
}

// takeAndGive lets many clients acquire, renew and release leases at the same time, and returns the
// errors.
func takeAndGive(t *testing.T, a lease.Authority) (failed []error) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			id, name := number(i), fmt.Sprint("näme ", i)
			for range 3 {
				for _, req := range []lease.Request{
					{Action: lease.ActionAcquire, Proposed: id, Owner: "worker-1", Duration: time.Minute},
					{Action: lease.ActionRenew, ID: id}, {Action: lease.ActionRelease, ID: id},
				} {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					_, err := a.Do(ctx, name, req)
					cancel()
					if err != nil {
						mu.Lock()
						failed = append(failed, fmt.Errorf("%v %s: %w", req.Action, name, err))
						mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	return failed
}

// Behind a pooler, both drivers work with the settings in the README. With other settings, the
// errors say what to set.
func TestPooler(t *testing.T) {
	database := shared.Database(t)
	url := shared.Pooler(t)(database)
	for what, s := range map[string]struct {
		authority lease.Authority
		works     bool
	}{
		"pgx, exec":                  {openPgx(t, url+"&default_query_exec_mode=exec").Authority(), true},
		"lib/pq, binary parameters":  {open(t, url+"&binary_parameters=yes").Authority(), true},
		"pgx, statements prepared":   {openPgx(t, url).Authority(), false},
		"lib/pq, no such parameters": {open(t, url).Authority(), false},
	} {
		t.Run(what, func(t *testing.T) {
			failed := takeAndGive(t, s.authority)
			t.Logf("%d of 180 requests failed", len(failed))
			if s.works && len(failed) > 0 {
				t.Error(failed[0])
			}
			said := 0
			for _, err := range failed {
				if strings.Contains(err.Error(), "lib/pq needs binary_parameters=yes, and pgx default_query_exec_mode=exec") {
					said++
				}
			}
			if !s.works && said == 0 {
				t.Errorf("no error says what to set: %v", failed)
			}
		})
	}
}

// One store listens without the pooler, and gets a signal from another store that uses the pooler.
func TestListenPastThePooler(t *testing.T) {
	database := shared.Database(t)
	url := shared.Pooler(t)(database) + "&default_query_exec_mode=exec"
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	direct, err := pgxpool.ParseConfig(shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	s, err := pglease.New(p, &pglease.Options{Listen: direct.ConnConfig})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := number(1)
	signals, err := s.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []lease.Request{{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}, {Action: lease.ActionRelease, ID: id}} {
		if _, err := openPgx(t, url).Authority().Do(t.Context(), "x", req); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case _, open := <-signals:
		if !open {
			t.Error("the watch is lost")
		}
	case <-time.After(10 * time.Second):
		t.Error("no signal")
	}
}

// A dialer makes connections that a test can let die silently: no data passes any more, but the
// connections are not closed.
type dialer struct {
	dead atomic.Bool

	mu   sync.Mutex
	made []net.Conn
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, 0)
}

func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	m := &mortal{Conn: conn, dead: &d.dead, closed: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, m)
	return m, nil
}

// close closes all connections.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.made {
		conn.Close()
	}
}

type mortal struct {
	net.Conn
	dead   *atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (c *mortal) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.dead.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *mortal) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return len(b), nil // into the void
	}
	return c.Conn.Write(b)
}

func (c *mortal) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deadline bounds a test of connections that die silently.
const deadline = 200 * time.Millisecond

// A request over a connection that has died silently returns when its context ends. The driver
// decides whether to keep a connection that has died silently. pgx closes the connection and can
// open another, even if the number of connections is limited. lib/pq keeps a connection that has
// died silently. If the number of connections is limited, lib/pq has no usable connection left in
// the end.
func TestSilentDeath(t *testing.T) {
	const size = 2
	openSQL := func(t *testing.T, db *sql.DB, limit int) lease.Authority {
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(limit)
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Authority()
	}
	openPq := func(t *testing.T, url string, d *dialer, limit int) lease.Authority {
		connector, err := pq.NewConnector(url)
		if err != nil {
			t.Fatal(err)
		}
		connector.Dialer(d)
		return openSQL(t, sql.OpenDB(connector), limit)
	}
	config := func(t *testing.T, url string, d *dialer) *pgxpool.Config {
		c, err := pgxpool.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		c.MaxConns = size
		c.ConnConfig.DialFunc = func(_ context.Context, network, address string) (net.Conn, error) { return d.Dial(network, address) }
		return c
	}
	for what, s := range map[string]struct {
		open   func(t *testing.T, url string, d *dialer) lease.Authority
		refuse string // a part of the error after the network has recovered
	}{
		"pgx": {open: func(t *testing.T, url string, d *dialer) lease.Authority {
			p, err := pgxpool.NewWithConfig(t.Context(), config(t, url, d))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			s, err := pglease.New(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return s.Authority()
		}},
		"database/sql with pgx, limited": {open: func(t *testing.T, url string, d *dialer) lease.Authority {
			return openSQL(t, stdlib.OpenDB(*config(t, url, d).ConnConfig), size)
		}},
		"lib/pq, not limited": {open: func(t *testing.T, url string, d *dialer) lease.Authority {
			return openPq(t, url, d, 0)
		}},
		"lib/pq, limited": {open: func(t *testing.T, url string, d *dialer) lease.Authority {
			return openPq(t, url, d, size)
		}, refuse: "all 2 connections of the pool are in use"},
	} {
		t.Run(what, func(t *testing.T) {
			url, d := shared.URL(shared.Database(t)), new(dialer)
			a, id := s.open(t, url, d), number(1)
			t.Cleanup(d.close) // before the database is closed
			if _, err := a.Do(t.Context(), "x", lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Hour}); err != nil {
				t.Fatal(err)
			}
			renew := func(timeout time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, err := a.Do(ctx, "x", lease.Request{Action: lease.ActionRenew, ID: id})
				return err
			}
			d.dead.Store(true)
			for range size + 1 {
				began := time.Now()
				if err := renew(deadline); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			}
			d.dead.Store(false) // new connections work
			if s.refuse != "" {
				if err := renew(deadline); err == nil || !strings.Contains(err.Error(), s.refuse) {
					t.Errorf("%v, want %q", err, s.refuse)
				}
			} else if err := renew(20 * time.Second); err != nil {
				t.Errorf("over another connection: %v", err)
			}
		})
	}
}
