package pglease_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// schema1 is the old text of the schema in version 1.
//
//go:embed testdata/schema-1.sql
var schema1 string

// If the tables are too old, the store refuses them with advice. Running the schema over old tables
// keeps leases and tokens.
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
	_, err = s.Watch(t.Context(), "held")
	says(t, err, "watch", "held", "the tables are older than this library", "call pglease.Migrate")
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
	if !within(signals, func(open bool) bool { return open }) {
		t.Error("no signal after the release")
	}
	for name, epoch := range map[string]uint64{"held": 42, "free": 52, "gone": 62} {
		if res := do(t, a, name, acquire(idB, time.Minute), 0); res.Record.Epoch != epoch {
			t.Errorf("%s: epoch %d, want %d", name, res.Record.Epoch, epoch)
		}
	}
}

// If a watch cannot use a database, Watch refuses it with advice, and no channel is closed
// silently.
func TestWatchRefusesADatabase(t *testing.T) {
	older, columnless, floorless := shared.Database(t), shared.Database(t), shared.Database(t)
	shared.Exec(t, older, "update lease_floor set schema = 1")
	shared.Exec(t, columnless, "alter table lease_row drop column signalled cascade")
	shared.Exec(t, floorless, "alter table lease_floor disable trigger all; delete from lease_floor")
	for url, want := range map[string]string{
		shared.URL("postgres"):                             "call pglease.Migrate",
		shared.URL(older):                                  "the tables have version 1, and must have 2 or newer",
		shared.URL(columnless):                             "the tables are older than this library",
		shared.URL(floorless):                              "lease_floor has no row",
		shared.URL(columnless) + "&client_encoding=latin1": "client_encoding LATIN1",
	} {
		_, err := store(t, pool(t, url), nil).Watch(t.Context(), "x")
		says(t, err, "watch", want)
		if !errors.As(err, new(*lease.PermanentError)) {
			t.Errorf("%v is not permanent", err)
		}
	}
}

// This library also accepts a newer schema. Running an older schema over a newer schema does not
// lower its version.
func TestNewerSchema(t *testing.T) {
	database := shared.Database(t)
	shared.Exec(t, database, "update lease_floor set schema = 4")
	shared.Exec(t, database, pglease.Tables)
	var version int
	p := pool(t, shared.URL(database))
	if err := p.QueryRow(t.Context(), "select schema from lease_floor").Scan(&version); err != nil || version != 4 {
		t.Errorf("version %d, %v", version, err)
	}
	do(t, store(t, p, nil).Authority(), "x", acquire(idA, time.Minute), 0)
}

// In a new database, the schema prints no notice.
func TestSchemaPrintsNoNotice(t *testing.T) {
	database := shared.Name()
	shared.Exec(t, "postgres", "create database "+database)
	config, err := pgx.ParseConfig(shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { t.Errorf("%s: %s", n.Severity, n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), pglease.Tables); err != nil {
		t.Fatal(err)
	}
}

// If the schema refuses the database, the command in the documents fails and makes no table.
func TestDocumentedCommandStops(t *testing.T) {
	psql := regexp.MustCompile(`(psql .*?)(\S+) < \S*tables\.sql`)
	documents, err := filepath.Glob("examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{} // the document that contains the command, by command
	for _, document := range append(documents, "README.md", "doc.go") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		found := psql.FindAllStringSubmatch(string(text), -1)
		if found == nil {
			t.Errorf("%s has no command for the schema", document)
		}
		for _, match := range found {
			commands[match[1]] = document
		}
	}
	for command, document := range commands {
		for encoding, works := range map[string]bool{"utf8": true, "latin1": false} {
			database := shared.Name()
			shared.Exec(t, "postgres", "create database "+database+" template template0 encoding "+encoding+" locale 'C'")
			out, err := exec.CommandContext(t.Context(), "sh", "-c", command+"'"+shared.URL(database)+"' < tables.sql").CombinedOutput()
			var tables int
			scan(t, pool(t, shared.URL(database)), "select count(*) from pg_tables where tablename like 'lease%'", &tables)
			if (err == nil) != works || (tables > 0) != works {
				t.Errorf("%s of %s in a database of %s: %v, %d tables\n%s", command, document, encoding, err, tables, out)
			}
		}
	}
}

// In a database that does not use UTF8, two drivers would make two leases of one name.
func TestEncoding(t *testing.T) {
	database := shared.Name()
	shared.Exec(t, "postgres", "create database "+database+" template template0 encoding latin1 locale 'C'")
	conn, err := pgx.Connect(t.Context(), shared.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), pglease.Tables)
	says(t, err, "encoding LATIN1", "must have UTF8")
	// The operator makes the tables nevertheless.
	if _, err := conn.Exec(t.Context(), strings.Replace(pglease.Tables, "<> 'UTF8'", "= ''", 1)); err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"utf8", "latin1"} {
		a := store(t, pool(t, shared.URL(database)+"&client_encoding="+encoding), nil).Authority()
		_, err := a.Do(t.Context(), "jobs/nächtlich", acquire(idA, time.Minute))
		says(t, err, "encoding LATIN1", "must have UTF8")
	}
	var rows int
	if err := conn.QueryRow(t.Context(), "select count(*) from lease").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
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
// library and in psql. But the operator cannot make or delete a row.
func TestOperator(t *testing.T) {
	database := shared.Database(t)
	worker, operator := "worker_"+database, "operator_"+database
	shared.Exec(t, database, fmt.Sprintf("create role %s login; create role %s login;", worker, operator)+grants(t, "worker", worker)+grants(t, "operator", operator))
	as := func(role string) string { return strings.Replace(shared.URL(database), "postgres@", role+"@", 1) }
	working := store(t, pool(t, as(worker)), nil).Authority()
	p := pool(t, as(operator))
	operating := store(t, p, nil).Authority()
	do(t, working, "x", acquire(idA, time.Hour), 0)
	do(t, working, "y", acquire(idA, time.Hour), 0)
	var rows int
	if err := p.QueryRow(t.Context(), "select count(*) from lease where state = 'leased'").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("psql lists %d rows, %v", rows, err)
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

// code returns the SQLSTATE of an error.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Several processes can make the tables at the same time, with each driver, also in a schema that is not
// in the search path.
func TestMigrateAtOnce(t *testing.T) {
	for round := range 10 {
		database := shared.Name()
		shared.Exec(t, "postgres", "create database "+database)
		o := &pglease.Options{}
		if round%2 == 1 {
			o.Schema = `my "leases`
			shared.Exec(t, database, `create schema "my ""leases"`)
		}
		p := pool(t, shared.URL(database))
		db := stdlib.OpenDBFromPool(p)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				migrate := func() error { return pglease.Migrate(t.Context(), p, o) }
				if i%2 == 1 {
					migrate = func() error { return pglease.MigrateSQL(t.Context(), db, o) }
				}
				if err := migrate(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		do(t, store(t, p, o).Authority(), "x", acquire(idA, time.Minute), 0)
		if err := pglease.Migrate(t.Context(), p, o); err != nil {
			t.Error(err)
		}
		do(t, store(t, p, o).Authority(), "x", renew(idA), 0)
	}
}

// The error of Migrate says what to do. If another transaction uses older tables, Migrate fails before
// renewals have waited for long.
func TestMigrateFails(t *testing.T) {
	ctx, database := t.Context(), shared.Database(t)
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
	if err := pglease.Migrate(ctx, nil, nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
	if err := pglease.MigrateSQL(ctx, nil, nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
}

// lease_break leaves the same record as lease.Break, from every state and with every kind of grace.
func TestBreakByHand(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
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
				if !within(signals, func(open bool) bool { return open }) {
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
// remembers the record does not undo it.
func TestChangesByHand(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	for i, edit := range []string{"owner = 'edited'", "until = until + interval '1 h'", "until = null, duration = 'infinite'", "version = 1, id = '" + idB.String() + "'",
		"epoch = 0, version = version + 5", "changed = changed - interval '1 h'", "signalled = null"} {
		for _, table := range []string{"lease", "lease_row"} {
			name := fmt.Sprint("x", i, table)
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
			if !within(signals, func(open bool) bool { return open }) {
				t.Errorf("%s of %s is not signalled", edit, table)
			}
			if after, err := s.Load(ctx, name); err != nil || after.Version == before.Version || after.Record.Epoch != before.Record.Epoch || after.Now.Before(before.Now) {
				t.Errorf("%s of %s: %+v after %+v, %v", edit, table, after, before, err)
			}
			if _, err := s.Swap(ctx, name, before, before.Record); lease.CodeOf(err) != lease.ErrConflict {
				t.Errorf("%s of %s is undone: %v", edit, table, err)
			}
		}
	}
}
