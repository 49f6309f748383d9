package mysqllease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Mark returns the mark of a resource, for use in the transaction tx. The mark is the newest fencing token
// that the resource has seen, and is stored in the table lease_mark of the connection's database. Call
// [fencing.Advance] at the beginning of every transaction that reads or writes the resource under a lease:
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err := fencing.Advance(ctx, mysqllease.Mark(tx, "accounts"), token); err != nil {
//		return err // there is a newer token: roll back
//	}
//	// read, compute, write
//	err = tx.Commit()
//
// Transactions that use the same mark run one after the other. In REPEATABLE READ, the default isolation
// level, all queries of a transaction see the data as they were at its first query. So do not send a query
// before Advance: if an earlier holder commits a write after that query but before Advance, no query of the
// transaction sees the write. Mark panics if tx is nil.
func Mark(tx *sql.Tx, name string) fencing.Mark {
	if tx == nil {
		panic("mysqllease: Mark: tx must not be nil")
	}
	return mark{tx, name}
}

type mark struct {
	tx   *sql.Tx
	name string
}

func (m mark) String() string { return fmt.Sprintf("mark %q", m.name) }

// Advance locks the row of the mark, even if the mark does not change. The SQL can compare tokens as text,
// because all valid tokens have the same number of digits.
func (m mark) Advance(ctx context.Context, tok lease.Token) (seen lease.Token, err error) {
	if err := lease.CheckName(m.name); err != nil {
		return "", err
	}
	const raise = `insert into lease_mark (name, token) values (?, ?) on duplicate key update token = greatest(token, ?)`
	if _, err = m.tx.ExecContext(ctx, raise, []byte(m.name), string(tok), string(tok)); err == nil {
		err = m.tx.QueryRowContext(ctx, `select token from lease_mark where name = ? for update`, []byte(m.name)).Scan(&seen)
	}
	if err != nil {
		return "", fmt.Errorf("mysqllease: raise the mark of %q: %w", m.name, err)
	}
	return seen, nil
}
