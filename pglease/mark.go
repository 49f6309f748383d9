package pglease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Mark returns the mark of a resource, which is the newest fencing token that the resource has seen, for use
// in the transaction tx. The mark is stored in the table lease_mark, which the server finds through its
// search_path. Call [fencing.Advance] at the beginning of every transaction that reads or writes the resource
// under a lease:
//
//	tx, err := pool.Begin(ctx)
//	if err := fencing.Advance(ctx, pglease.Mark(tx, "accounts"), token); err != nil {
//		return err // there is a newer token: roll back
//	}
//	// read, compute, write
//	err = tx.Commit(ctx)
//
// Transactions that use the same mark run one after the other, so a client that stops in the middle of its
// transaction blocks the others. To limit this time, set idle_in_transaction_session_timeout. If the name is
// malformed, the method Advance of the mark returns the error of [lease.CheckName]. Mark panics if tx is nil.
func Mark(tx pgx.Tx, name string) fencing.Mark {
	if tx == nil {
		panic("pglease: Mark: tx must not be nil")
	}
	return mark{func(ctx context.Context, query string, args ...any) row { return tx.QueryRow(ctx, query, args...) }, name}
}

// MarkSQL is like [Mark], for a transaction of database/sql. MarkSQL panics if tx is nil.
func MarkSQL(tx *sql.Tx, name string) fencing.Mark {
	if tx == nil {
		panic("pglease: MarkSQL: tx must not be nil")
	}
	return mark{func(ctx context.Context, query string, args ...any) row {
		return tx.QueryRowContext(ctx, query, args...)
	}, name}
}

type row interface{ Scan(...any) error }

type mark struct {
	query func(ctx context.Context, query string, args ...any) row
	name  string
}

func (m mark) String() string { return fmt.Sprintf("mark %q", m.name) }

// Advance locks the row of the mark, even if the mark does not change. The SQL can compare two tokens as
// strings, because all valid tokens have the same number of digits.
func (m mark) Advance(ctx context.Context, tok lease.Token) (lease.Token, error) {
	if err := lease.CheckName(m.name); err != nil {
		return "", err
	}
	const raise = `
insert into lease_mark as m (name, token) values ($1, $2)
on conflict (name) do update set token = greatest(m.token, excluded.token)
returning m.token`
	var seen lease.Token
	if err := m.query(ctx, raise, m.name, string(tok)).Scan(&seen); err != nil {
		return "", describeError("raise the mark of", m.name, err)
	}
	return seen, nil
}
