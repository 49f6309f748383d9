// Guarded is a program to run on several machines. The machine that holds the lease increments a
// counter in a table. The mark, which is the newest fencing token, is stored in the same database
// as the counter. Each transaction compares its token with the mark before it increments the
// counter.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < schema.sql
//	psql "$DATABASE_URL" -c 'create table counter as select 0 as n'
//	go run ./examples/guarded
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// count adds one to the counter. If the database has already seen a token newer than tok, count
// returns an error and does not change the counter.
func count(ctx context.Context, db *pgxpool.Pool, tok lease.Token) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := fencing.Advance(ctx, pglease.Mark(tx, "counter"), tok); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update counter set n = n + 1")
		return err
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	leases, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // a second pool, so that no renewal waits for a query
	check(err)
	store, err := pglease.New(leases, nil)
	check(err)
	l, err := store.Lease("counter", nil)
	check(err)
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			if err := count(ctx, db, tok); err != nil {
				return err
			}
		}
		return nil
	}, nil) // after a loss, the program ends, and whatever started it should start it again
	check(l.Close(context.WithoutCancel(ctx)))
	if ctx.Err() == nil { // otherwise the program was interrupted
		check(err)
	}
}
