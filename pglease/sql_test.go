package pglease_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// A deaf driver never returns from a query, like lib/pq on a connection that has died silently.
type deaf struct {
	driver.Conn
	freed chan struct{}
}

func (d deaf) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d deaf) Driver() driver.Driver                        { return nil }
func (d deaf) Close() error                                 { return nil }

func (d deaf) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	<-d.freed
	return nil, errors.New("the connection was closed")
}

func TestSQLStoreReturnsWhenItsContextEnds(t *testing.T) {
	d := deaf{freed: make(chan struct{})}
	db := sql.OpenDB(d)
	db.SetMaxOpenConns(2)
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Authority()
	for i, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), release(idA), {Action: lease.ActionRead}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		returned := make(chan error, 1)
		go func() {
			_, err := a.Do(ctx, "x", req)
			returned <- err
		}()
		select {
		case err := <-returned:
			if !errors.Is(err, context.DeadlineExceeded) || lease.CodeOf(err) != 0 {
				t.Errorf("%v: %v", req.Action, err)
			}
			if i > 1 { // the requests from which the driver has not returned keep both connections
				says(t, err, "all 2 connections of the pool are in use")
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%v does not return", req.Action)
		}
		cancel()
	}
	close(d.freed)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A worn driver makes connections, and the first connections are broken, as after a restart of the
// server.
type worn struct {
	driver.Conn
	made, broken *atomic.Int64
}

func (w worn) Connect(context.Context) (driver.Conn, error) {
	w.made.Add(1)
	return w, nil
}
func (w worn) Driver() driver.Driver { return nil }
func (w worn) Close() error          { return nil }

func (w worn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if w.broken.Add(-1) >= 0 {
		return nil, driver.ErrBadConn
	}
	return nil, errors.New("this connection works")
}

// While the driver says that a connection is broken, a load tries another connection, but not
// forever.
func TestBrokenConnectionsAreReplaced(t *testing.T) {
	for broken, want := range map[int64]string{idle: "this connection works", 1 << 40: "bad connection"} {
		s, w := openWorn(t, broken)
		_, err := s.Load(t.Context(), "x")
		says(t, err, want)
		if made := w.made.Load(); made != idle+1 {
			t.Errorf("%d connections were made, want %d", made, idle+1)
		}
	}
}

// The store does not repeat a swap whose connection was broken, but the next swap gets a working
// connection.
func TestBrokenConnectionsAreRemovedAfterASwap(t *testing.T) {
	s, _ := openWorn(t, idle)
	next := lease.Record{State: lease.Leased, ID: idA, Duration: time.Minute, Until: time.Now().UTC().Round(0).Add(time.Minute), Epoch: 1}
	for _, want := range []string{"bad connection", "this connection works"} {
		_, err := s.Swap(t.Context(), "x", lease.Snapshot{Version: "absent-1", Now: time.Now()}, next)
		says(t, err, want)
	}
}

const idle = 5 // connections

// openWorn returns a store with idle connections. The parameter broken is the number of broken
// connections.
func openWorn(t *testing.T, broken int64) (*pglease.SQLStore, worn) {
	w := worn{made: new(atomic.Int64), broken: new(atomic.Int64)}
	db := sql.OpenDB(w)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(idle)
	var conns []*sql.Conn
	for range idle {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Close()
	}
	w.broken.Store(broken)
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// A panicking driver panics, like lib/pq when it receives the answer to another statement.
type panicking struct{ deaf }

func (d panicking) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (panicking) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	panic("index out of range")
}

// If the driver panics, the store returns an error, and the process does not end.
func TestDriverPanics(t *testing.T) {
	db := sql.OpenDB(panicking{})
	defer db.Close()
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Authority().Do(t.Context(), "x", acquire(idA, time.Minute))
	says(t, err, "the driver panicked: index out of range", "binary_parameters=yes")
	if lease.CodeOf(err) != 0 || errors.As(err, new(*lease.PermanentError)) {
		t.Errorf("%v", err)
	}
}

// A release through an SQLStore sends a signal to a waiter at a Store.
func TestSQLStoreSignals(t *testing.T) {
	url := shared.URL(shared.Database(t))
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	signals, err := store(t, pool(t, url), nil).Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), "x", release(idA), 0)
	if !within(signals, func(open bool) bool { return open }) {
		t.Error("no signal")
	}
}
