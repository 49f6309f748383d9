package mysqllease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/mysqllease"
)

// harm injects a random fault into a server and the network in front of it, and returns the name of the fault.
func harm(t *testing.T, s *server, p *enginetest.Proxy, r *rand.Rand) string {
	t.Helper()
	pause := time.Duration(100+r.IntN(400)) * time.Millisecond
	switch r.IntN(5) {
	case 0:
		s.signal(syscall.SIGSTOP)
		time.Sleep(pause) // a real engine
		s.signal(syscall.SIGCONT)
		return "stop and continue"
	case 1:
		s.kill()
		if err := s.start(); err != nil {
			t.Error(err)
		}
		return "kill and restart"
	case 2:
		p.Isolate()
		time.Sleep(pause) // a real engine
		p.Heal()
		return "silence"
	case 3:
		p.Cut()
		return "cut"
	}
	db := s.db(t, "mysql")
	defer db.Close()
	var kills string
	if err := db.QueryRow("select coalesce(group_concat(concat('kill ', id) separator ';'), '') from information_schema.processlist where id <> connection_id() and db like 'd%'").Scan(&kills); err != nil {
		t.Error(err)
	}
	for kill := range strings.SplitSeq(kills, ";") {
		_, _ = db.Exec(kill) // it may have ended meanwhile
	}
	return "kill connections"
}

// behind returns a server with tables, and the URL of the tables behind a proxy.
func behind(t *testing.T) (s *server, p *enginetest.Proxy, url string) {
	s = ownServer(t)
	database := s.database(t)
	p = enginetest.NewProxy(t, s.address, nil)
	return s, p, "mysql://root@" + p.Addr() + "/" + database
}

// SPEC A2: histories are linearizable while connections are cut or die, and the server is killed or stands still.
func TestHistoriesUnderFaults(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	s, p, url := behind(t)
	checkHistories(t, url, runs, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, func(r *rand.Rand) string { return harm(t, s, p, r) })
}

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write passes the
// guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	s, p, url := behind(t)
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: []string{url, url, url}, Duration: time.Second}, rounds,
		func(r *rand.Rand) string { return harm(t, s, p, r) })
}

// Errors say whether the request was carried out, and what to do.
func TestErrors(t *testing.T) {
	s := ownServer(t)
	database := s.database(t)
	s.exec(t, database, "create database empty")
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
	fails := func(a lease.Authority, unsent, permanent bool, words string) {
		t.Helper()
		_, err := a.Do(t.Context(), "x", acquire(idB, time.Minute))
		enginetest.Says(t, err, nil, words)
		if enginetest.Permanent(err) != permanent || errors.Is(err, lease.ErrUnsent) != unsent {
			t.Errorf("%v: permanent %v, unsent %v", err, enginetest.Permanent(err), !unsent)
		}
	}
	fails(open("root", "", "empty"), false, true, "mysqllease.Migrate")
	fails(open("root", "", "nowhere"), true, true, "correct the user")
	fails(open("worker", "wrong", database), true, true, "correct the user")
	fails(open("idle", "", database), false, true, "privileges")
	worker := open("worker", "secret", database)
	do(t, worker, "y", acquire(idA, time.Hour), 0)
	s.exec(t, database, "set global read_only = 1")
	fails(worker, false, false, "connect to the primary")
	s.exec(t, database, "set global read_only = 0")
	do(t, worker, "y", renew(idA), 0)
	s.exec(t, database, "create user busy with max_user_connections 1")
	s.exec(t, database, "grant execute on "+database+".* to busy")
	fails(open("busy", "", database), false, true, "privileges")
	fails(open("busy", "", database), true, false, "raise max_connections")

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
	enginetest.Eventually(t, "the release waits", func(context.Context) error {
		var id int
		err := db.QueryRow("select id from information_schema.processlist where user = 'worker' and command = 'Query'").Scan(&id)
		if err == nil {
			_, err = db.Exec(fmt.Sprint("kill ", id))
		}
		return err
	})
	if err := <-killed; err == nil || lease.CodeOf(err) != 0 || errors.Is(err, lease.ErrUnsent) || enginetest.Permanent(err) {
		t.Errorf("a connection that was killed: %v", err)
	}

	strange := ownServer(t, "--sysdate-is-now")
	_, err = strange.store(t, "mysql", nil).Load(t.Context(), "x")
	enginetest.Says(t, err, nil, "sysdate-is-now")
}

// Renewals that are too many for one packet are sent by themselves.
func TestLargeBatch(t *testing.T) {
	s := ownServer(t, "--max-allowed-packet=5120")
	a := s.store(t, s.database(t), &mysqllease.Options{Connections: 4}).Authority()
	name := func(i int) string { return fmt.Sprint(strings.Repeat("x", 900), i) }
	for i := range 40 {
		do(t, a, name(i), acquire(idA, time.Hour), 0)
	}
	enginetest.Together(40, 400, func(i int) {
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
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began = time.Now()
	if _, err = a.Do(ctx, "x", renew(idA)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// A watch outlives its server, and ends with its Store.
func TestWatchOutlivesAServer(t *testing.T) {
	s := ownServer(t)
	database := s.database(t)
	st := s.store(t, database, nil)
	do(t, st.Authority(), "x", acquire(idA, time.Hour), 0)
	signals, err := st.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	s.exec(t, database, "delete from lease_row")
	if !enginetest.Within(signals, true) {
		t.Error("no signal of a change after a restart")
	}
	st.Close()
	if !enginetest.Within(signals, false) {
		t.Error("the Store was closed and the watch is not")
	}
	if _, err := st.Watch(t.Context(), "x"); lease.CodeOf(err) != lease.ErrClosed {
		t.Errorf("a watch of a closed Store: %v", err)
	}
}

// A store leaves a server that has become read-only and keeps its connections open, for the one that its address leads
// to by now.
func TestLeavesAReadOnlyServer(t *testing.T) {
	servers := []*server{ownServer(t), ownServer(t)}
	for _, s := range servers {
		s.exec(t, "mysql", "create database app")
		s.exec(t, "mysql", "grant all on app.* to app identified by 'secret'")
		if err := mysqllease.Migrate(t.Context(), s.config("app")); err != nil {
			t.Fatal(err)
		}
	}
	p := enginetest.NewProxy(t, servers[0].address, nil)
	st, err := openStore("mysql://app:secret@" + p.Addr() + "/app")
	if err != nil {
		t.Fatal(err)
	}
	defer st.(*mysqllease.Store).Close()
	enginetest.Together(8, 8, func(i int) { do(t, st.Authority(), fmt.Sprint("x", i), acquire(idA, time.Hour), 0) })
	p.Target(servers[1].address)
	do(t, st.Authority(), "x1", renew(idA), 0) // its connections lead to the first server
	servers[0].exec(t, "mysql", "set global read_only = 1")
	do(t, st.Authority(), "x1", renew(idA), lease.ErrIDMismatch) // the second server does not know the lease
	do(t, st.Authority(), "y", acquire(idB, time.Hour), 0)
}
