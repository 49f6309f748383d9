package mysqllease_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
)

// Errors say whether the request was carried out, and what to do.
func TestErrors(t *testing.T) {
	s := ownServer(t)
	database := s.database(t)
	s.exec(t, database, "create database untouched")
	s.exec(t, database, "create user worker identified by 'secret'")
	for _, table := range []string{"row", "floor", "mark"} {
		s.exec(t, database, "grant select, insert, update on "+database+".lease_"+table+" to worker")
	}
	s.exec(t, database, "create user idle")
	s.exec(t, database, "grant execute on "+database+".* to worker, idle")
	open := func(user, password, database string) lease.Authority {
		c := s.config(database)
		c.User, c.Passwd = user, password
		st, err := mysqllease.New(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		return st.Authority()
	}
	fails := func(a lease.Authority, recurs bool, words string) { // in the Load, so nothing was changed
		t.Helper()
		_, err := a.Do(t.Context(), "x", acquire(idB, time.Minute))
		says(t, err, nil, words)
		if permanent(err) != recurs || !errors.Is(err, lease.ErrUnsent) {
			t.Errorf("%v: permanent %v, unsent %v", err, permanent(err), errors.Is(err, lease.ErrUnsent))
		}
	}
	fails(open("root", "", "untouched"), true, "mysqllease.Migrate")
	fails(open("root", "", "nowhere"), true, "correct the user")
	fails(open("worker", "wrong", database), true, "correct the user")
	fails(open("idle", "", database), true, "privileges")
	worker := open("worker", "secret", database)
	do(t, worker, "y", acquire(idA, time.Hour), 0)
	s.exec(t, database, "set global read_only = 1")
	fails(worker, false, "connect to the primary")
	s.exec(t, database, "set global read_only = 0")
	do(t, worker, "y", renew(idA), 0)
	s.exec(t, database, "create user busy with max_user_connections 1")
	s.exec(t, database, "grant execute on "+database+".* to busy")
	fails(open("busy", "", database), true, "privileges")
	fails(open("busy", "", database), false, "raise max_connections")

	db := s.db(t, database)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("select * from lease_row for update"); err != nil {
		t.Fatal(err)
	}
	killed := make(chan error, 1)
	go func() {
		_, err := worker.Do(context.Background(), "y", release(idA))
		killed <- err
	}()
	eventually(t, "the release waits", func(context.Context) error {
		var id int
		err := db.QueryRow("select id from information_schema.processlist where user = 'worker' and command = 'Query'").Scan(&id)
		if err == nil {
			_, err = db.Exec(fmt.Sprint("kill ", id))
		}
		return err
	})
	if err := <-killed; err == nil || lease.CodeOf(err) != 0 || errors.Is(err, lease.ErrUnsent) || permanent(err) {
		t.Errorf("a connection that was killed: %v", err)
	}

	strange := ownServer(t, "--sysdate-is-now")
	_, err = strange.store(t, "mysql", nil).Load(t.Context(), "x")
	says(t, err, nil, "sysdate-is-now")
}

// Renewals that are too many for one packet are sent by themselves.
func TestLargeBatch(t *testing.T) {
	s := ownServer(t, "--max-allowed-packet=5120")
	a := s.store(t, s.database(t), &mysqllease.Options{Connections: 4}).Authority()
	name := func(i int) string { return fmt.Sprint(strings.Repeat("x", 900), i) }
	for i := range 40 {
		do(t, a, name(i), acquire(idA, time.Hour), 0)
	}
	shorthand.Together(40, 400, func(i int) {
		if _, err := a.Do(t.Context(), name(i%40), renew(idA)); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	})
}

// A server that accepts connections and never answers, or stands still, holds up no request beyond its context, and
// no attempt to connect for longer than its limit.
func TestFrozenServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections stay in its backlog
	c := shared.config("mysql")
	c.Addr = l.Addr().String()
	st, err := mysqllease.New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	began := time.Now()
	_, err = st.Load(context.Background(), "x")
	if took := time.Since(began); !errors.Is(err, lease.ErrUnsent) || took < time.Second || took > 10*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	s := ownServer(t)
	a := s.store(t, s.database(t), nil).Authority()
	do(t, a, "x", acquire(idA, time.Hour), 0)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began = time.Now()
	if _, err = a.Do(ctx, "x", renew(idA)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// A store leaves a server that has become read-only and keeps its connections open, for the one that its address leads
// to by now. So does the store of a user who may write to a read-only server.
func TestLeavesAReadOnlyServer(t *testing.T) {
	servers := []*server{ownServer(t), ownServer(t)}
	for _, s := range servers {
		s.exec(t, "mysql", "create database app")
		s.exec(t, "mysql", "create user app identified by 'secret'")
		s.exec(t, "mysql", "grant all on app.* to app")
		if err := mysqllease.Migrate(t.Context(), s.config("app")); err != nil {
			t.Fatal(err)
		}
	}
	p := enginetest.NewProxy(t, servers[0].Addr(), nil)
	users := []string{"app:secret", "root"}
	var swaps, renewals []lease.Authority // of each user
	for i, user := range users {
		first, second := enginetest.Open(t, "mysql://"+user+"@"+p.Addr()+"/app").Authority(), enginetest.Open(t, "mysql://"+user+"@"+p.Addr()+"/app").Authority()
		swaps, renewals = append(swaps, first), append(renewals, second)
		shorthand.Together(8, 8, func(j int) { do(t, first, fmt.Sprint(user, j), acquire(idA, time.Hour), 0) })
		do(t, second, fmt.Sprint("renewed", i), acquire(idA, time.Hour), 0)
	}
	p.Target(servers[1].Addr())
	for i := range users {
		do(t, renewals[i], fmt.Sprint("renewed", i), renew(idA), 0) // its connections lead to the first server
	}
	servers[0].exec(t, "mysql", "set global read_only = 1")
	for i, user := range users {
		do(t, renewals[i], fmt.Sprint("renewed", i), renew(idA), lease.ErrIDMismatch) // the second server does not know the lease
		do(t, swaps[i], user+"1", release(idA), lease.ErrIDMismatch)
		do(t, swaps[i], fmt.Sprint("new", i), acquire(idB, time.Hour), 0)
	}
}
