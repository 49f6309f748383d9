package pglease_test

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/pglease"
)

// schema1 is the old text of the schema in version 1.
//
//go:embed testdata/schema-1.sql
var schema1 string

// The store refuses tables that are too old, with advice. The schema over them keeps leases and tokens.
func TestMigration(t *testing.T) {
	database := shared.Name()
	shared.Exec(t, "postgres", "create database "+database)
	shared.Exec(t, database, schema1)
	shared.Exec(t, database, `insert into lease values
		('held', 'leased', 'worker-1', now() + interval '1 h', '1h0m0s', 41, '`+idA.String()+`'),
		('free', 'available', '', null, '', 51, null), ('gone', 'available', '', null, '', 61, null);
		delete from lease where name = 'gone'`)
	s := store(t, pool(t, shared.URL(database)), nil)
	a := s.Authority()
	_, err := a.Do(t.Context(), "held", renew(idA))
	says(t, err, "held", "the tables are older than this library", "call pglease.Migrate")
	for range 2 { // the second time changes nothing
		shared.Exec(t, database, pglease.Tables)
	}
	signals, err := s.Watch(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	if res := do(t, a, "held", renew(idA), 0); res.Record.Epoch != 41 || res.Record.Owner != "worker-1" {
		t.Errorf("renewed %v", res.Record)
	}
	do(t, a, "held", release(idA), 0)
	if !within(signals, true) {
		t.Error("no signal after the release")
	}
	for name, epoch := range map[string]uint64{"held": 42, "free": 52, "gone": 62} {
		if res := do(t, a, name, acquire(idB, time.Minute), 0); res.Record.Epoch != epoch {
			t.Errorf("%s: epoch %d, want %d", name, res.Record.Epoch, epoch)
		}
	}
}

// grants returns the grants that the comments of the schema give to a role.
func grants(t *testing.T, role, to string) (sql string) {
	t.Helper()
	for line := range strings.Lines(pglease.Tables) {
		if grant, is := strings.CutPrefix(strings.TrimSpace(line), "--   grant "); is && strings.HasSuffix(grant, " to "+role+";") {
			sql += "grant " + strings.TrimSuffix(grant, role+";") + to + ";"
		}
	}
	if sql == "" {
		t.Fatalf("the schema says nothing of a %s", role)
	}
	return sql
}

// With the grants in the comments of the schema, an operator can list and break leases, through the
// library and in psql, but cannot make or delete a row.
func TestOperator(t *testing.T) {
	database := shared.Database(t, pglease.Tables)
	worker, operator := "worker_"+database, "operator_"+database
	shared.Exec(t, database, fmt.Sprintf("create role %s login; create role %s login;", worker, operator)+grants(t, "worker", worker)+grants(t, "operator", operator))
	as := func(role string) string { return strings.Replace(shared.URL(database), "postgres@", role+"@", 1) }
	working := store(t, pool(t, as(worker)), nil).Authority()
	p := pool(t, as(operator))
	operating := store(t, p, nil).Authority()
	do(t, working, "x", acquire(idA, time.Hour), 0)
	do(t, working, "y", acquire(idA, time.Hour), 0)
	rows := ""
	scan(t, p, "select string_agg(concat_ws(' ', name, state, owner, duration, epoch, id, until > now() + interval '59 min'), ', ' order by name) from lease", &rows)
	if want := fmt.Sprintf("x leased worker-1 1h0m0s 1 %s t, y leased worker-1 1h0m0s 1 %[1]s t", idA); rows != want {
		t.Errorf("psql shows %s, want %s", rows, want)
	}
	for e, err := range operating.(lease.Lister).List(t.Context(), "") {
		if err != nil || e.Record.Owner != "worker-1" || e.Record.State != lease.Leased {
			t.Errorf("%+v, %v", e, err)
		}
	}
	do(t, operating, "x", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Minute)}, 0)
	do(t, operating, "x", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, 0)
	if _, err := p.Exec(t.Context(), "select lease_break('y', '0')"); err != nil {
		t.Errorf("in psql: %v", err)
	}
	for _, name := range []string{"x", "y"} {
		do(t, working, name, renew(idA), lease.ErrBroken)
	}
	_, err := operating.Do(t.Context(), "z", acquire(idB, time.Minute))
	says(t, err, "42501", "grant")
	if _, err := p.Exec(t.Context(), "delete from lease"); code(err) != "42501" {
		t.Errorf("a deletion by the operator: %v", err)
	}
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Several processes can make the tables at the same time, with each driver, also in a schema that is not
// in the search path. Newer tables stay as they are, and work. The server sends no notice.
func TestMigrateAtOnce(t *testing.T) {
	for round := range 6 {
		database := shared.Name()
		shared.Exec(t, "postgres", "create database "+database)
		o := &pglease.Options{}
		if round%2 == 1 {
			o.Schema = `my "leases`
			shared.Exec(t, database, `create schema "my ""leases"`)
		}
		p := pool(t, shared.URL(database), func(c *pgxpool.Config) {
			c.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { t.Errorf("%s: %s", n.Severity, n.Message) }
		})
		db := stdlib.OpenDBFromPool(p)
		shorthand.Together(6, 6, func(i int) {
			migrate := func() error { return pglease.Migrate(t.Context(), p, o) }
			if i%2 == 1 {
				migrate = func() error { return pglease.MigrateSQL(t.Context(), db, o) }
			}
			if err := migrate(); err != nil {
				t.Error(err)
			}
		})
		do(t, store(t, p, o).Authority(), "x", acquire(idA, time.Minute), 0)
		floor := "lease_floor"
		if o.Schema != "" {
			floor = `"my ""leases".lease_floor`
		}
		shared.Exec(t, database, "update "+floor+" set schema = 5") // as a newer library does
		if err := pglease.Migrate(t.Context(), p, o); err != nil {
			t.Error(err)
		}
		version := 0
		if scan(t, p, "select schema from "+floor, &version); version != 5 {
			t.Errorf("the tables have version %d", version)
		}
		do(t, store(t, p, o).Authority(), "x", renew(idA), 0)
	}
}

// The error of Migrate says what to do. If another transaction uses older tables, Migrate fails before
// renewals have waited for long.
func TestMigrateFails(t *testing.T) {
	ctx, database := t.Context(), shared.Database(t, pglease.Tables)
	p := pool(t, shared.URL(database))
	says(t, pglease.Migrate(ctx, p, &pglease.Options{Schema: "nowhere"}), "pglease: migrate", "create the schema that Options.Schema names")
	shared.Exec(t, database, "update lease_floor set schema = 2")
	err := pgx.BeginFunc(ctx, pool(t, shared.URL(database)), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select from lease_row"); err != nil {
			return err
		}
		return pglease.Migrate(ctx, p, nil)
	})
	says(t, err, "another transaction uses the tables: try again")
	shared.Exec(t, database, `create role "r`+database+`" login`)
	other := pool(t, strings.Replace(shared.URL(database), "postgres@", "r"+database+"@", 1))
	says(t, pglease.Migrate(ctx, other, nil), "as the owner of the tables")
}

// lease_break leaves the same record as lease.Break, from every state and with every kind of grace.
func TestBreakByHand(t *testing.T) {
	_, p := database(t, "")
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	for state, reqs := range map[string][]lease.Request{
		"unknown":   nil,
		"available": {acquire(idA, time.Minute), release(idA)},
		"leased":    {acquire(idA, time.Minute)},
		"odd":       {acquire(idA, time.Minute+1)},
		"infinite":  {acquire(idA, lease.Infinite)},
		"expired":   {acquire(idA, time.Microsecond)},
		"breaking":  {acquire(idA, time.Minute), {Action: lease.ActionBreak, Period: lease.Grace(30 * time.Second)}},
		"broken":    {acquire(idA, time.Minute), {Action: lease.ActionBreak, Period: lease.Grace(0)}},
	} {
		for grace, period := range map[string]lease.Period{"null": {}, "'0'": lease.Grace(0), "'20 s'": lease.Grace(20 * time.Second), "'1 h'": lease.Grace(time.Hour)} {
			t.Run(state+" "+grace, func(t *testing.T) {
				byHand, byLibrary := state+grace+" 1", state+grace+" 2"
				for _, name := range []string{byHand, byLibrary} {
					for _, req := range reqs {
						do(t, a, name, req, 0)
					}
				}
				signals, err := s.Watch(ctx, byHand)
				if err != nil {
					t.Fatal(err)
				}
				left, refusal := lease.Break(ctx, a, byLibrary, period)
				var seconds float64
				err = p.QueryRow(ctx, "select extract(epoch from lease_break($1, "+grace+"))", byHand).Scan(&seconds)
				if refusal != nil {
					if lease.CodeOf(refusal) != lease.ErrNotPresent || code(err) != "P0002" {
						t.Errorf("the library says %v, and psql %v", refusal, err)
					}
					return
				}
				if err != nil || (left.Seconds()-seconds) > 5 || (left.Seconds()-seconds) < -5 {
					t.Errorf("%v and %v s are left, %v", left, seconds, err)
				}
				got, err1 := s.Load(ctx, byHand)
				want, err2 := s.Load(ctx, byLibrary)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				if got.Record.Until.Sub(want.Record.Until).Abs() < 5*time.Second {
					want.Record.Until = got.Record.Until
				}
				if got.Record != want.Record {
					t.Errorf("%v, want %v", got.Record, want.Record)
				}
				if !within(signals, true) {
					t.Error("a watch is not signalled")
				}
			})
		}
	}
	if _, err := p.Exec(ctx, "select lease_break('leased null 1', '-1 s')"); code(err) != "22023" {
		t.Errorf("a negative grace: %v", err)
	}
}

// Every change by hand of lease_row or of the view makes a new version and is signalled. A store that
// remembers the record does not undo it. A renewal in one exchange goes only past another end and another
// version of the row, because the answer to an earlier renewal may have been lost.
func TestChangesByHand(t *testing.T) {
	var m meter
	_, p := database(t, "", m.trace)
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	for edit, inOne := range map[string]bool{
		"until = until + interval '1 h'": true, "epoch = 0, version = version + 5": true, "changed = changed - interval '1 h'": true, "signalled = null": true,
		"owner = 'edited'": false, "until = null, duration = 'infinite'": false, "duration = '2h0m0s'": false, "version = 1, id = '" + idB.String() + "'": false,
		"epoch = epoch + 1": false, "nanos = 1": false, "until = clock_timestamp()": false, "state = 'breaking'": false,
	} {
		for _, table := range []string{"lease", "lease_row"} {
			name := edit + " of " + table
			do(t, a, name, acquire(idA, time.Hour), 0)
			before, err := s.Load(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			signals, err := s.Watch(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Exec(ctx, "update "+table+" set "+edit+" where name = $1", name); err != nil {
				t.Fatal(err)
			}
			if !within(signals, true) {
				t.Errorf("%s is not signalled", name)
			}
			after, err := s.Load(ctx, name)
			if err != nil || after.Version == before.Version || after.Record.Epoch < before.Record.Epoch || after.Now.Before(before.Now) {
				t.Errorf("%s: %+v after %+v, %v", name, after, before, err)
			}
			want, refusal := lease.Step(after.Record, renew(idA), after.Now)
			var res lease.Result
			if n := m.count(func() { res = do(t, a, name, renew(idA), lease.CodeOf(refusal)) }); (n == 1) != inOne {
				t.Errorf("%s: renewed in %d exchanges", name, n)
			}
			if want.Until = res.Record.Until; res.Record != want {
				t.Errorf("%s is undone: %v, want %v", name, res.Record, want)
			}
			if row, err := s.Load(ctx, name); err != nil || row.Record != res.Record {
				t.Errorf("%s: the row has %v, %v, and the answer was %v", name, row.Record, err, res.Record)
			}
		}
	}
}
