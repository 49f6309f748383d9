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

// A scripted driver calls query for every query, on any connection, and counts its connections.
type scripted struct {
	driver.Conn
	query func() error
	made  *atomic.Int64
}

func (d scripted) Driver() driver.Driver { return nil }
func (d scripted) Close() error          { return nil }

func (d scripted) Connect(context.Context) (driver.Conn, error) {
	d.made.Add(1)
	return d, nil
}

func (d scripted) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, d.query()
}

const idle = 5 // connections

// script returns a store with idle connections, all of which call query.
func script(t *testing.T, query func() error) (s *pglease.SQLStore, made *atomic.Int64) {
	t.Helper()
	made = new(atomic.Int64)
	db := sql.OpenDB(scripted{query: query, made: made})
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(idle + 1)
	db.SetMaxIdleConns(idle)
	var conns [idle]*sql.Conn
	for i := range conns {
		var err error
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	s, err := pglease.NewSQL(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, made
}

// breaks returns a query for which the first connections are broken, as after a restart of the server.
func breaks(broken int64) func() error {
	var n atomic.Int64
	return func() error {
		if n.Add(1) <= broken {
			return driver.ErrBadConn
		}
		return errors.New("this connection works")
	}
}

// A driver can ignore contexts, like lib/pq on a connection that has died silently. A request returns
// nevertheless, and in the end its error says that no connection is left.
func TestSQLStoreReturnsWhenItsContextEnds(t *testing.T) {
	freed := make(chan struct{})
	s, _ := script(t, func() error { <-freed; return errors.New("the connection was closed") })
	defer close(freed)
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), release(idA), {Action: lease.ActionRead}} {
		for range 2 {
			says(t, ask(t, s.Authority(), req), "deadline exceeded")
		}
	}
	_ = ask(t, s.Authority(), renew(idA)) // takes the reserved connection
	says(t, ask(t, s.Authority(), renew(idA)), "all 6 connections of the pool are in use")
}

// While the driver says that a connection is broken, a load tries another connection, but not forever.
// A swap is never repeated, because its outcome is unknown, but the next one gets a working connection.
func TestBrokenConnections(t *testing.T) {
	for broken, want := range map[int64]string{idle: "this connection works", 1 << 40: "bad connection"} {
		s, made := script(t, breaks(broken))
		_, err := s.Load(t.Context(), "x")
		says(t, err, want)
		if made.Load() != idle+1 {
			t.Errorf("%d connections were made, want %d", made.Load(), idle+1)
		}
	}
	s, _ := script(t, breaks(idle))
	next := lease.Record{State: lease.Leased, ID: idA, Duration: time.Minute, Until: time.Now().UTC().Round(0).Add(time.Minute), Epoch: 1}
	for _, want := range []string{"bad connection", "this connection works"} {
		_, err := s.Swap(t.Context(), "x", lease.Snapshot{Version: "absent-1", Now: time.Now()}, next)
		if says(t, err, want); lease.CodeOf(err) != 0 || errors.Is(err, lease.ErrConflict) {
			t.Errorf("%v; the outcome must be unknown", err)
		}
	}
}

// If the driver panics, like lib/pq at the answer to another statement, the store returns an error.
func TestDriverPanics(t *testing.T) {
	s, _ := script(t, func() error { panic("index out of range") })
	_, err := s.Authority().Do(t.Context(), "x", acquire(idA, time.Minute))
	says(t, err, "the driver panicked: index out of range", "binary_parameters=yes")
	if lease.CodeOf(err).Refusal() || errors.As(err, new(*lease.PermanentError)) {
		t.Errorf("%v", err)
	}
}
