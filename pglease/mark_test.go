package pglease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
)

// SPEC G1, G3, G4, G5.
func TestMark(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rollback := errors.New("roll back")
	for what, admit := range map[string]func(name string, tok lease.Token, then error) error{
		"pgx": func(name string, tok lease.Token, then error) error {
			return pgx.BeginFunc(t.Context(), p, func(tx pgx.Tx) error {
				return errors.Join(fencing.Advance(t.Context(), pglease.Mark(tx, "pgx "+name), tok), then)
			})
		},
		"database/sql": func(name string, tok lease.Token, then error) error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := errors.Join(fencing.Advance(t.Context(), pglease.MarkSQL(tx, "sql "+name), tok), then); err != nil {
				return err
			}
			return tx.Commit()
		},
	} {
		t.Run(what, func(t *testing.T) {
			for _, c := range []struct {
				name  string
				epoch uint64
				then  error
				want  error
			}{
				{"a", 9, nil, nil}, {"a", 9, nil, nil}, {"a", 10, nil, nil}, {"a", 9, nil, fencing.ErrStale},
				{"a", 12, rollback, rollback}, {"a", 11, nil, nil}, {"a", 10, nil, fencing.ErrStale},
				{"b", 1, nil, nil}, {"a", 0, nil, lease.ErrToken},
			} {
				if err := admit(c.name, lease.TokenOf(c.epoch), c.then); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("%s %d: %v, want %v", c.name, c.epoch, err, c.want)
				}
			}
			var stale *fencing.StaleError
			if err := admit("a", lease.TokenOf(3), nil); !errors.As(err, &stale) || stale.Seen != lease.TokenOf(11) {
				t.Errorf("%v does not tell what was seen", err)
			}
		})
	}
}

// If lease.CheckName refuses a name, Advance refuses it too, and makes no row.
func TestMarkOfABadName(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, name := range []string{"", "a\x00b", "\xff", strings.Repeat("x", lease.MaxLabel+1)} {
		for what, advance := range map[string]func() error{
			"Mark": func() error {
				tx, err := p.Begin(t.Context())
				if err != nil {
					return err
				}
				defer tx.Commit(t.Context())
				return fencing.Advance(t.Context(), pglease.Mark(tx, name), lease.TokenOf(1))
			},
			"MarkSQL": func() error {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					return err
				}
				defer tx.Commit()
				return fencing.Advance(t.Context(), pglease.MarkSQL(tx, name), lease.TokenOf(1))
			},
		} {
			if err := advance(); lease.CodeOf(err) != lease.ErrName {
				t.Errorf("%s of %.9q: %v, want the error of CheckName", what, name, err)
			}
		}
	}
	rows := 0
	scan(t, p, "select count(*) from lease_mark", &rows)
	if rows != 0 {
		t.Errorf("%d marks were stored", rows)
	}
}

// If the transaction is nil, the text of the panic names the function and the argument.
func TestMarkOfNil(t *testing.T) {
	for want, f := range map[string]func(){
		"pglease: Mark: tx must not be nil":    func() { pglease.Mark(nil, "x") },
		"pglease: MarkSQL: tx must not be nil": func() { pglease.MarkSQL(nil, "x") },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

// A transaction with an equal or older token also waits for the transaction that has locked the
// mark. So the data that the locking transaction has read does not change.
func TestMarkExcludes(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	ctx := t.Context()
	admit := func(tok uint64) (pgx.Tx, error) {
		tx, err := p.Begin(ctx)
		if err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return tx, fencing.Advance(bounded, pglease.Mark(tx, "x"), lease.TokenOf(tok))
	}
	for range 2 { // the second time, the mark already exists
		first, err := admit(5)
		if err != nil {
			t.Fatal(err)
		}
		for _, tok := range []uint64{4, 5, 6} {
			tx, err := admit(tok)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("token %d beside 5: %v", tok, err)
			}
			_ = tx.Rollback(ctx)
		}
		if err := first.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
