// Job makes a daily report. A scheduler starts it on every machine, and one of them makes the report and
// stores it in a table, in the same database as the newest fencing token. A program that is started later
// finds the report and does nothing. If a machine crashes before it has stored the report, the next
// program that is started makes the report.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//	psql "$DATABASE_URL" -c 'create table reports (day date primary key, report text)'
//	go run ./examples/job
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

// The function guarded first compares tok with the newest token in the database. If the token in the database
// is newer, the function returns an error. Otherwise, the function runs the query in the same transaction,
// and stores the text that the query returns in dest.
func guarded(ctx context.Context, db *pgxpool.Pool, tok lease.Token, dest *string, query string, args ...any) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := fencing.Advance(ctx, pglease.Mark(tx, "reports"), tok); err != nil {
			return err
		}
		return tx.QueryRow(ctx, query, args...).Scan(dest)
	})
}

// The function run makes the report, unless the report exists already or another machine has the lease. The
// result did says what the function has done. If the program is told to stop before the report is stored, the
// function returns an error, because the job is not done.
func run() (did string, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	db, err1 := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	leases, err2 := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // a second pool, so that no renewal waits for a query
	store, err3 := pglease.New(leases, nil)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return "", err // The URL is malformed, and nothing is open.
	}
	defer func() { store.Close(); leases.Close(); db.Close(); stop() }()
	l, err := store.Lease("jobs/report", nil)
	if err != nil {
		return "", err
	}
	did = "nothing, because another machine is making the report" // unless TryRun calls the function
	_, err = session.TryRun(ctx, l, func(ctx context.Context, tok lease.Token) error {
		if err := guarded(ctx, db, tok, &did, "select coalesce(max('nothing, because it found the report, ' || report), '') from reports where day = current_date"); err != nil || did != "" {
			return err
		}
		// This query is the work. Work must stop when ctx ends, because another machine may begin soon.
		if err := db.QueryRow(ctx, "select count(*) || ' tables' from pg_tables, pg_sleep(1)").Scan(&did); err != nil {
			return err
		}
		return guarded(ctx, db, tok, &did, "insert into reports values (current_date, $1) returning 'made the report, ' || report", did)
	}, nil)
	return did, errors.Join(err, l.Close(context.WithoutCancel(ctx)))
}

func main() {
	did, err := run()
	if err != nil {
		log.Fatal(err)
	}
	log.Print("did: ", did)
}
