package pglease_test

import (
	"context"
	"errors"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
)

// Each transaction that reads or writes the data first advances the mark. If the database has already
// seen a newer token, the transaction is rolled back.
func ExampleMark() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/accounts")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	deposit := func(tok lease.Token, amount int) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := fencing.Advance(ctx, pglease.Mark(tx, "accounts"), tok); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "update accounts set balance = balance + $1", amount)
			return err
		})
	}
	tok := lease.TokenOf(1) // in a real program, the token that session.Run passes to its function
	switch err := deposit(tok, 100); {
	case errors.Is(err, fencing.ErrStale):
		log.Print("another process has the lease: ", err)
	case err != nil:
		log.Print(err)
	}
}
