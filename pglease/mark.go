package pglease

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Mark returns the mark of a resource within a transaction. The mark is the newest fencing token
// that the resource has seen. It is in the table lease_mark, in the database of the data. Call
// [fencing.Advance] at the beginning of every transaction that reads or writes the resource under a
// lease:
//
//	tx, err := pool.Begin(ctx)
//	if err := fencing.Advance(ctx, pglease.Mark(tx, "accounts"), token); err != nil {
//		return err // a newer holder has been here: roll back
//	}
//	// read, compute, write
//	err = tx.Commit(ctx)
//
// Transactions with the same mark run one after the other. One that stops half-way blocks the next:
// bound it with idle_in_transaction_session_timeout.
func Mark(tx pgx.Tx, name string) fencing.Mark {
	return mark{func(ctx context.Context, query string, args ...any) row { return tx.QueryRow(ctx, query, args...) }, name}
}

// MarkSQL is Mark for a transaction of database/sql.
func MarkSQL(tx *sql.Tx, name string) fencing.Mark {
	return mark{func(ctx context.Context, query string, args ...any) row {
		return tx.QueryRowContext(ctx, query, args...)
	}, name}
}

type mark struct {
	query func(ctx context.Context, query string, args ...any) row
	name  string
}

// Advance locks the mark even if it does not change. Well-formed tokens sort as strings.
func (m mark) Advance(ctx context.Context, tok lease.Token) (lease.Token, error) {
	const raise = `
insert into lease_mark as m (name, token) values ($1, $2)
on conflict (name) do update set token = greatest(m.token, excluded.token)
returning m.token`
	var seen lease.Token
	if err := m.query(ctx, raise, m.name, string(tok)).Scan(&seen); err != nil {
		return "", explain("raise the mark of", m.name, err)
	}
	return seen, nil
}
