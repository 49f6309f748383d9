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
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	says(t, err, "held", "the tables are older than this library", "run the statements of pglease.Schema again")
	_, err = s.Watch(t.Context(), "held")
	says(t, err, "watch", "held", "the tables are older than this library", "run the statements of pglease.Schema again")
	for range 2 { // the second time changes nothing
		shared.Exec(t, database, pglease.Schema)
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
		shared.URL("postgres"):                             "run the statements of pglease.Schema once",
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
	shared.Exec(t, database, "update lease_floor set schema = 3")
	shared.Exec(t, database, pglease.Schema)
	var version int
	p := pool(t, shared.URL(database))
	if err := p.QueryRow(t.Context(), "select schema from lease_floor").Scan(&version); err != nil || version != 3 {
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
	if _, err := conn.Exec(t.Context(), pglease.Schema); err != nil {
		t.Fatal(err)
	}
}

// If the schema refuses the database, the command in the documents fails and makes no table.
func TestDocumentedCommandStops(t *testing.T) {
	psql := regexp.MustCompile(`(psql .*?)(\S+) < \S*schema\.sql`)
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
			out, err := exec.CommandContext(t.Context(), "sh", "-c", command+"'"+shared.URL(database)+"' < schema.sql").CombinedOutput()
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
	_, err = conn.Exec(t.Context(), pglease.Schema)
	says(t, err, "encoding LATIN1", "must have UTF8")
	// The operator makes the tables nevertheless.
	begin := strings.Index(pglease.Schema, "-- One row a lease")
	if _, err := conn.Exec(t.Context(), pglease.Schema[begin:]); err != nil {
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
	for line := range strings.Lines(pglease.Schema) {
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
	if _, err := p.Exec(t.Context(), "update lease set state = 'broken', until = null where name = 'y'"); err != nil {
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
