package pglease_test

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// The schema of version 1, as it was.
//
//go:embed testdata/schema-1.sql
var schema1 string

// Older tables are refused with advice, and running the schema over them keeps leases and tokens.
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

// A newer schema serves this library too, and running an older one over it does not bring it back.
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

// In a database that is not UTF8 two drivers would make two leases of one name.
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

// grants returns the grants to a role that the schema states in its comments.
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

// An operator with the grants that the schema states lists and breaks leases, through the library and
// in psql. It makes and deletes no row.
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
