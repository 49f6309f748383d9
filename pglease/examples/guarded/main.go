// Guarded is a program to run on several machines. The machine that holds the lease increments a counter
// in a table. Each transaction first compares its token with the mark, which is the newest fencing token
// and is stored in the same database.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//	psql "$DATABASE_URL" -c 'create table counter as select 0 as n'
//	go run ./examples/guarded
package main

import (
	"cmp"
	"context"
	"errors"
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

// The function count adds one to the counter. It returns an error and does not change the counter
// if the database has already seen a token newer than tok.
func count(ctx context.Context, db *pgxpool.Pool, tok lease.Token) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := fencing.Advance(ctx, pglease.Mark(tx, "counter"), tok); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update counter set n = n + 1")
		return err
	})
}

// run counts while it holds the lease. If the lease is lost, run waits until it has acquired the lease again.
// If the program is told to stop, run returns nil, even if it is waiting for the lease.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	db, err1 := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	leases, err2 := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // a second pool, so that no renewal waits for a query
	store, err3 := pglease.New(leases, nil)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err // The URL is malformed, and nothing is open.
	}
	defer func() { store.Close(); leases.Close(); db.Close(); stop() }()
	l, err := store.Lease("counter", nil)
	if err != nil {
		return err
	}
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) (err error) {
		for ; err == nil && ctx.Err() == nil; time.Sleep(time.Second) {
			err = count(ctx, db, tok)
		}
		return err
	}, &session.RunOptions{Again: session.AfterLoss})
	if session.Stopped(ctx, err) {
		err = nil
	}
	return errors.Join(err, l.Close(context.WithoutCancel(ctx)))
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
