// Job makes a daily report. A scheduler starts the program on every machine, and one of the machines
// makes the report. The report of a day is stored in a table. The newest fencing token is stored in
// the same database. If a machine starts the program later, the program finds the report and does
// nothing. If a machine crashes before it has stored the report, the next start of the program makes
// the report.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < schema.sql
//	psql "$DATABASE_URL" -c 'create table reports (day date primary key, report text)'
//	go run ./examples/job
package main

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// guarded compares tok with the newest token in the database, and calls f in the same transaction.
// If the token in the database is newer than tok, guarded returns an error and does not call f.
func guarded(ctx context.Context, db *pgxpool.Pool, tok lease.Token, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := fencing.Advance(ctx, pglease.Mark(tx, "reports"), tok); err != nil {
			return err
		}
		return f(tx)
	})
}

func main() {
	ctx := context.Background()
	db := must(pgxpool.New(ctx, os.Getenv("DATABASE_URL")))
	leases := must(pgxpool.New(ctx, os.Getenv("DATABASE_URL"))) // a second pool, so that no renewal waits for a query
	l := must(must(pglease.New(leases, nil)).Lease("jobs/report", nil))
	defer l.Close(ctx)
	var reports int
	ran := must(session.TryRun(ctx, l, func(ctx context.Context, tok lease.Token) error {
		err := guarded(ctx, db, tok, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, "select count(*) from reports where day = current_date").Scan(&reports)
		})
		if err != nil || reports > 0 {
			return err
		}
		var report string // The work. ctx ends before another machine can begin.
		if err := db.QueryRow(ctx, "select count(*) || ' tables' from pg_tables, pg_sleep(1)").Scan(&report); err != nil {
			return err
		}
		return guarded(ctx, db, tok, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into reports values (current_date, $1)", report)
			return err
		})
	}, nil))
	log.Printf("had the lease: %v; made the report: %v", ran, ran && reports == 0)
}
