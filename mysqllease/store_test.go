package mysqllease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
)

// SPEC A2, S5: a request that waits for a locked row looks at the row and the clock again when it gets the lock.
// Here the clock passes the end of the lease, or the row changes. If the connection breaks, the outcome is unknown.
func TestRequestsWaitForALock(t *testing.T) {
	const kill = "kill ID"
	swap := func(s *mysqllease.Store, old lease.Snapshot) error { // a grant to another holder
		_, err := s.Swap(context.Background(), "x", old, lease.Record{State: lease.Leased, ID: idB, Duration: lease.Infinite, Epoch: old.Record.Epoch + 1})
		return err
	}
	load := func(s *mysqllease.Store, _ lease.Snapshot) error { // of a lease that a renewal under way keeps
		time.Sleep(1700 * time.Millisecond) // a real engine
		snap, err := s.Load(context.Background(), "x")
		if err == nil && snap.Record.At(snap.Now).State != lease.Leased {
			err = lease.ErrEnded
		}
		return err
	}
	request := func(req lease.Request) func(*mysqllease.Store, lease.Snapshot) error {
		return func(s *mysqllease.Store, _ lease.Snapshot) error {
			_, err := s.Authority().Do(context.Background(), "x", req)
			return err
		}
	}
	for what, c := range map[string]struct {
		duration time.Duration
		lock     string
		then     string // while the request waits; it causes a deadlock, or ends the connection of the request
		request  func(*mysqllease.Store, lease.Snapshot) error
		passes   bool // the end of the lease
		want     lease.Code
	}{
		"the lease ends before the swap gets the lock": {1500 * time.Millisecond, "select * from lease_row for update", "", swap, true, lease.ErrConflict},
		"the load of a lease that ends waits":          {1500 * time.Millisecond, "update lease_row set until = until + 60000000", "", load, false, 0},
		"an insert waits for a deletion":               {0, "delete from lease_row", "", swap, false, lease.ErrConflict},
		"a swap waits for a change by hand":            {time.Minute, "update lease_row set owner = 'me'", "", swap, false, lease.ErrConflict},
		"a refusal after a deadlock":                   {time.Minute, "update lease_row set owner = 'me'", "update lease_floor set changed = changed + 1", request(acquire(idB, time.Minute)), false, lease.ErrHeldByOther},
		"a renewal goes around a row that is locked":   {time.Minute, "update lease_row set state = 'broken', until = null", "", request(renew(idA)), false, lease.ErrBroken},
		"a release whose connection is killed":         {time.Minute, "select * from lease_row for update", kill, request(release(idA)), false, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			database := shared.database(t)
			s, db := shared.store(t, database, nil), shared.db(t, database)
			old, err := s.Load(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			do(t, s.Authority(), "x", acquire(idA, max(c.duration, 1)), 0)
			if c.duration > 0 {
				if old, err = s.Load(t.Context(), "x"); err != nil || old.Record.At(old.Now).State != lease.Leased {
					t.Fatalf("%v, %v: the machine is too busy", old.Record, err)
				}
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if _, err := tx.Exec(c.lock); err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() { answered <- c.request(s, old) }()
			waiting, id := "select coalesce(max(p.id), 0) from information_schema.innodb_trx x join information_schema.processlist p on p.id = x.trx_mysql_thread_id where trx_state = 'LOCK WAIT' and db = ?", 0
			for id == 0 && len(answered) == 0 {
				time.Sleep(150 * time.Millisecond) // a real engine, which updates this table only if it was not read for 100 ms
				if err := db.QueryRow(waiting, database).Scan(&id); err != nil {
					t.Fatal(err)
				}
			}
			if c.passes {
				time.Sleep(1700 * time.Millisecond) // a real engine
			}
			if c.then != "" {
				if _, err := tx.Exec(strings.Replace(c.then, "ID", fmt.Sprint(id), 1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			err = <-answered
			if unknown := err != nil && lease.CodeOf(err) == 0 && !errors.Is(err, lease.ErrUnsent) && !permanent(err); lease.CodeOf(err) != c.want || c.want == 0 && unknown != (c.then == kill) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A list goes through all pages in the order of the names, which are bytes.
func TestList(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	s := shared.store(t, database, nil)
	for _, name := range []string{"job", "Job", "jób", "jo\u0301b", "job ", "job\t", " job", `j\ob'"%_`, "🔑", "🔒", strings.Repeat("é", 512), strings.Repeat("é", 511) + "ê"} {
		do(t, s.Authority(), name, acquire(idA, time.Hour), 0) // the suite lets a store refuse them
	}
	var values []string
	for i := range 1234 {
		values = append(values, fmt.Sprintf("('list/%d', 'leased', 'me', 4e15, 1000, 7, '%v')", i+1, idA))
	}
	shared.exec(t, database, "insert into lease_row (name, state, owner, until, duration, epoch, id) values "+strings.Join(values, ", "))
	shared.exec(t, database, "insert into lease_row (name, state) values ('list/777/corrupt', 'leased'), ('list/777/corrupt too', ''), ('lisu', 'available')")
	seen, corrupt, last := 0, 0, ""
	for e, err := range s.List(t.Context(), "list/") {
		if e.Name <= last || !strings.HasPrefix(e.Name, "list/") {
			t.Errorf("%q after %q", e.Name, last)
		}
		if last = e.Name; err != nil {
			corrupt++
			says(t, err, lease.ErrCorrupt, "list/777/corrupt", "delete it")
		} else if seen++; e.Record.Epoch != 7 || e.Record.Owner != "me" || e.Record.State != lease.Leased {
			t.Errorf("%+v", e)
		}
	}
	if seen != 1234 || corrupt != 2 {
		t.Errorf("%d entries and %d errors", seen, corrupt)
	}
	_, err := s.Load(t.Context(), "list/777/corrupt too")
	says(t, err, lease.ErrCorrupt, "list/777/corrupt too", "delete it")
}

// SPEC S2, S3: an operator can change rows by hand. No token falls, and no version recurs.
func TestTokensOutliveTheRow(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	db := shared.db(t, database)
	by := func(sql string) func() error {
		return func() error { _, err := db.Exec(sql); return err }
	}
	open := func(floor lease.Token) shorthand.Store {
		return shared.store(t, database, &mysqllease.Options{Floor: floor})
	}
	shorthand.TokensOutliveTheRecord(t, "x", open, map[string]func() error{
		"a deletion": by("delete from lease_row"), "an old version": by("update lease_row set changed = 1, epoch = 0"), "a break": by("call lease_break('x', 0)")})
	for _, forgets := range []string{"update lease_row set name = 'y'", "delete from lease_floor", "update lease_floor set epoch = 0", "call lease_break('x', -1)", "call lease_break('y', 1)"} {
		if err := by(forgets)(); err == nil {
			t.Errorf("%q was carried out", forgets)
		}
	}
}

// A change by hand wakes waiters.
func TestChangesByHand(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	s := shared.store(t, database, nil)
	do(t, s.Authority(), "x", acquire(idA, time.Hour), 0)
	signals, err := s.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		sql   string
		state lease.State
	}{
		{"update lease_row set owner = 'me'", lease.Leased},
		{"call lease_break('x', 60)", lease.Breaking},
		{"call lease_break('x', 0)", lease.Broken},
		{"delete from lease_row", lease.Available},
		{"insert into lease_row (name) values ('x')", lease.Available},
	} {
		shared.exec(t, database, step.sql)
		if !shorthand.Within(signals, true) {
			t.Errorf("%q: no signal", step.sql)
		}
		if snap, err := s.Load(t.Context(), "x"); err != nil || snap.Record.At(snap.Now).State != step.state {
			t.Errorf("%q: %+v, %v", step.sql, snap, err)
		}
	}
	if s.Close(); !shorthand.Within(signals, false) {
		t.Error("the Store was closed and the watch is not")
	}
}

// SPEC S4: the time of a store never falls.
func TestClockSetBack(t *testing.T) {
	database := shared.database(t)
	enginetest.ClockSetBack(t, func(t testing.TB) enginetest.Store { return shared.store(t, database, nil) }, func() {
		shared.exec(t, database, "update lease_row set until = until + 3600000000, changed = changed + 3600000000")
	})
}

// README.md says how many exchanges a request takes. A process that waits only polls, four times a second.
func TestExchanges(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	database := shared.database(t)
	s := overLink(database)(t, func(_ context.Context, send func() error) error { n.Add(1); return send() }).(*mysqllease.Store)
	other := shared.store(t, database, nil).Authority()
	count := func() int { return int(n.Load()) }
	shorthand.Exchanges(t, s, other, "x", count, 2, 1, 2, 3, 2, 1, 0, 2) // the release conflicts first, because of the renewal that loads
	enginetest.WaitingCostsNothing(t, s, other, "y", 3, 20, count)
	enginetest.DeletionIsSeen(t, s, "z", func() error { shared.exec(t, database, "delete from lease_row where name = 'z'"); return nil })
}

func TestRenewalsGoFirst(t *testing.T) {
	t.Parallel()
	enginetest.RenewalsGoFirst(t, overLink(shared.database(t)), "x", 6)
}

// Several processes may make the tables at once, and again later, which keeps the order of tokens.
func TestMigrate(t *testing.T) {
	t.Parallel()
	shared.exec(t, "mysql", "create database tables_at_once")
	a := shared.store(t, "tables_at_once", nil).Authority()
	for epoch := range uint64(2) {
		shorthand.Together(8, 8, func(int) {
			if err := mysqllease.Migrate(t.Context(), shared.config("tables_at_once")); err != nil {
				t.Error(err)
			}
		})
		if err := shared.Client("tables_at_once", mysqllease.Tables); err != nil {
			t.Errorf("tables.sql: %v", err)
		}
		if res := do(t, a, "x", acquire(idA, time.Hour), 0); res.Record.Epoch != epoch+1 {
			t.Errorf("token %v, want that of %d", res.Record.Token(), epoch+1)
		}
		do(t, a, "x", release(idA), 0)
	}
}

func TestURL(t *testing.T) {
	t.Setenv("MYSQL_PWD", "p@ss")
	for url, want := range map[string]string{
		"mysql://u@h/d":                  "u:p@ss@tcp(h:3306)/d",
		"mysql://u:a%2Fb@h:7/d?tls=true": "u:a/b@tcp(h:7)/d?tls=true",
		"mysql://u:@[::1]:7/d":           "u@tcp([::1]:7)/d",
		"mysql://h/d":                    "", "mysql://u@h": "", "mysql://u@h/d/e": "", "mysql://u@h/d?timeout=1s": "", "mysql://u@/d": "", "mysql://u@h/d#e": "", "mysql://u@h:x/d": "",
	} {
		c, err := mysqllease.ConfigOf(url)
		if err == nil && c.FormatDSN() != want || (err != nil) != (want == "") {
			t.Errorf("%s: %v, %v, want %q", url, c, err, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []mysqllease.Options{{Connections: -1}, {PollInterval: -1}, {Floor: "7"}, {Limits: lease.Limits{MaxDuration: -1}}} {
		if _, err := mysqllease.New(shared.config("mysql"), &o); err == nil || !strings.Contains(err.Error(), "Options.") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
