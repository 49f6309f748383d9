//go:build unix

package sqlitelease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// A mark is the newest token that the data in a SQLite database has seen, in the transaction tx.
type mark struct {
	tx   *sql.Tx
	name string
}

// Advance implements fencing.Mark.
func (m mark) Advance(ctx context.Context, tok lease.Token) (seen lease.Token, err error) {
	const raise = `insert into mark (name, token) values (?, ?)
		on conflict (name) do update set token = max(token, excluded.token) returning token`
	err = m.tx.QueryRowContext(ctx, raise, m.name, string(tok)).Scan(&seen)
	return seen, err
}

// openData opens the database of the data, which must be another file than that of the leases, with the driver that
// sqlitelease imports: modernc.org/sqlite. With _txlock=immediate, a transaction waits for the lock of the file when
// it begins. Otherwise, a transaction that reads before it writes can fail at once with SQLITE_BUSY.
func openData(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(`create table if not exists mark (name text primary key, token text not null);
		create table if not exists counter as select 0 as n`)
	return db, err
}

// count adds one to the counter, unless the database has seen a token newer than tok.
func count(ctx context.Context, db *sql.DB, tok lease.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := fencing.Advance(ctx, mark{tx, "counter"}, tok); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "update counter set n = n + 1"); err != nil {
		return err
	}
	return tx.Commit()
}

// A guard for data in a SQLite database.
func Example_guard() {
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := openData(filepath.Join(dir, "data.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	fmt.Println(count(ctx, db, lease.TokenOf(34))) // a lease.Token as session.Run passes it to the work
	fmt.Println(count(ctx, db, lease.TokenOf(33)))
	var n int
	fmt.Println(db.QueryRow("select n from counter").Scan(&n), n)
	// Output:
	// <nil>
	// fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
	// <nil> 1
}

// Of several writers with different tokens, none writes after a newer one, and no update is lost.
func TestMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	db, err := openData(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exe(t, path, `create table history (token text);
		create trigger written after update on counter begin insert into history select token from mark; end`)
	var wrote atomic.Int64
	shorthand.Together(4, 40, func(i int) {
		if err := count(t.Context(), db, lease.TokenOf(uint64(i%4+1))); err == nil {
			wrote.Add(1)
		} else if !errors.Is(err, fencing.ErrStale) {
			t.Error(err)
		}
	})
	if n := query(t, path, "select n from counter"); n != fmt.Sprint(wrote.Load()) || wrote.Load() < 10 {
		t.Errorf("the counter is %s after %d writes", n, wrote.Load())
	}
	if falls := query(t, path, "select count(*) from history a, history b where a.rowid < b.rowid and a.token > b.token"); falls != "0" {
		t.Errorf("%s pairs of writes are in the wrong order", falls)
	}
}
