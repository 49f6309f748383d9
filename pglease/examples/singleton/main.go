// Singleton is a program that works in one process at a time. If you start version 1 and then version 2,
// version 1 stops its work, hands over the lease, and exits. Package examples/singleton describes this in
// detail.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//	go run ./examples/singleton -version 1
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/examples/singleton"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

func run(version string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pglease.New(pool, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	err = singleton.Lead(ctx, store.Authority(), "singleton", nil, func(ctx context.Context, tok lease.Token) error {
		log.Printf("version %s works with token %s", version, tok)
		<-ctx.Done() // the work
		log.Printf("version %s stops", version)
		return nil
	})
	if session.Stopped(ctx, err) {
		return nil
	}
	return err
}

func main() {
	version := flag.String("version", "1", "the version of this program")
	flag.Parse()
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	if err := run(*version); err != nil {
		log.Fatal(err)
	}
}
