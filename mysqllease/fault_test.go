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

// Errors say whether the request was carried out, and what to do. No attempt to connect takes longer than its limit.
func TestErrors(t *testing.T) {
	s, strange := ownServer(t), ownServer(t, "--sysdate-is-now")
	database := s.database(t)
	if err := s.Client(database, strings.ReplaceAll(`create database untouched; create user worker identified by 'secret'; create user idle;
		create user busy with max_user_connections 1; grant execute on d.* to worker, idle, busy;
		grant select, insert, update on d.lease_row to worker; grant select, update on d.lease_floor to worker`, "d.", database+".")); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections stay in its backlog
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	open := func(user, addr, database string) lease.Authority {
		return enginetest.Open(t, "mysql://"+user+"@"+addr+"/"+database).Authority()
	}
	fails := func(a lease.Authority, recurs bool, words string) { // in the Load, so nothing was changed
		t.Helper()
		began := time.Now()
		_, err := a.Do(t.Context(), "x", acquire(idB, time.Minute))
		says(t, err, lease.ErrUnsent, words)
		if took := time.Since(began); permanent(err) != recurs || took > 10*time.Second {
			t.Errorf("%v after %v, permanent %v", err, took, permanent(err))
		}
	}
	fails(open("root", s.Addr(), "untouched"), true, "mysqllease.Migrate")
	fails(open("root", s.Addr(), "nowhere"), true, "correct the user")
	fails(open("worker:wrong", s.Addr(), database), true, "correct the user")
	fails(open("idle", s.Addr(), database), true, "privileges")
	fails(open("root", silent.Addr().String(), "x"), false, "check that the server is up")
	fails(open("root", strange.Addr(), "mysql"), true, "sysdate-is-now")
	fails(open("busy", s.Addr(), database), true, "privileges")
	fails(open("busy", s.Addr(), database), false, "raise max_connections")
	worker := open("worker:secret", s.Addr(), database)
	do(t, worker, "y", acquire(idA, time.Hour), 0)
	s.exec(t, database, "set global read_only = 1")
	fails(worker, false, "connect to the primary")
	s.exec(t, database, "set global read_only = 0")
	do(t, worker, "y", renew(idA), 0)

	if err := s.Stop(); err != nil { // a frozen server holds up no request beyond its context
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := worker.Do(ctx, "y", renew(idA)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// A store leaves a server that has become read-only and keeps its connections open, for the one that its address leads
// to by now. So does the store of a user who may write to a read-only server, and one that only watches.
func TestLeavesAReadOnlyServer(t *testing.T) {
	first, second := ownServer(t), ownServer(t)
	for _, s := range []server{first, second} {
		s.exec(t, "mysql", "create database app")
		s.exec(t, "mysql", "create user app identified by 'secret'")
		s.exec(t, "mysql", "grant all on app.* to app")
		if err := mysqllease.Migrate(t.Context(), s.config("app")); err != nil {
			t.Fatal(err)
		}
	}
	p := enginetest.NewProxy(t, first.Addr(), nil)
	for _, user := range []string{"app:secret", "root"} {
		p.Target(first.Addr())
		open := func() lease.Authority { return enginetest.Open(t, "mysql://"+user+"@"+p.Addr()+"/app").Authority() }
		swaps, renewals, watching := open(), open(), open().(lease.Watcher)
		shorthand.Together(8, 8, func(i int) { do(t, swaps, fmt.Sprint(user, i), acquire(idA, time.Hour), 0) }) // over several connections
		do(t, renewals, user, acquire(idA, time.Hour), 0)
		signals, err := watching.Watch(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		p.Target(second.Addr())
		do(t, renewals, user, renew(idA), 0) // its connections lead to the first server
		first.exec(t, "mysql", "set global read_only = 1")
		do(t, renewals, user, renew(idA), lease.ErrIDMismatch) // the second server does not know the lease
		do(t, swaps, user+"1", acquire(idB, time.Hour), 0)     // at the first server, another holder has it
		do(t, swaps, user+"2", release(idA), lease.ErrIDMismatch)
		if !shorthand.Within(signals, true) { // that there is no such lease
			t.Error("the watch stays at the first server")
		}
		first.exec(t, "mysql", "set global read_only = 0")
	}
}
