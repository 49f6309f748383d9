package pglease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

// SPEC G1, G3, G4, G5.
func TestMark(t *testing.T) {
	_, p := database(t, "")
	db := stdlib.OpenDBFromPool(p)
	t.Cleanup(func() { db.Close() })
	t.Run("Mark", func(t *testing.T) {
		enginetest.TestMark(t, func(name string, f func(fencing.Mark) error) error {
			return pgx.BeginFunc(context.Background(), p, func(tx pgx.Tx) error { return f(pglease.Mark(tx, name)) })
		})
	})
	t.Run("MarkSQL", func(t *testing.T) {
		enginetest.TestMark(t, func(name string, f func(fencing.Mark) error) error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := f(pglease.MarkSQL(tx, name+"/sql")); err != nil {
				return err
			}
			return tx.Commit()
		})
	})
}

// lease_advance_mark is [fencing.Advance] of a Mark in SQL: both use the same marks, refuse the same tokens, and
// lock the mark.
func TestMarkInSQL(t *testing.T) {
	_, p := database(t, "insert into lease_mark values ('odd', '9')")
	ctx := t.Context()
	advance := func(tx pgx.Tx, name, tok any) error {
		_, err := tx.Exec(ctx, "call lease_advance_mark($1, $2)", name, tok)
		return err
	}
	sqlAlone := func(name, tok any) error {
		return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error { return advance(tx, name, tok) })
	}
	inGo := func(name string, tok lease.Token) error {
		return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error { return fencing.Advance(ctx, pglease.Mark(tx, name), tok) })
	}
	const stale, invalid, corrupt = "55000", "22023", "XX001"
	for i, c := range []struct {
		name, token any
		want        string // the SQLSTATE
	}{
		{"a", "00000000000000000009", ""}, {"a", "00000000000000000009", ""}, {"a", "00000000000000000010", ""},
		{"a", "00000000000000000009", stale}, {"b", "00000000000000000001", ""}, {"a", "09223372036854775807", ""},
		{"a", "", invalid}, {"a", nil, invalid}, {"a", "11", invalid}, {"a", "00000000000000000000", invalid},
		{"a", "09223372036854775808", invalid}, {"a", "00000000000000000011\n", invalid}, {"a", "0000000000000000001x", invalid},
		{"new", "", invalid}, {"odd", "00000000000000000001", corrupt}, {"", "00000000000000000009", invalid}, {nil, "00000000000000000009", invalid},
	} {
		if err := sqlAlone(c.name, c.token); code(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%d: %v, want %q", i, err, c.want)
		}
		if tok, is := c.token.(string); is && c.name == "a" {
			err := inGo("go", lease.Token(tok))
			if c.want == stale && !errors.Is(err, fencing.ErrStale) || c.want == invalid && lease.CodeOf(err) != lease.ErrToken || c.want == "" && err != nil {
				t.Errorf("%d: fencing.Advance says %v, and SQL %q", i, err, c.want)
			}
		}
	}
	err := errors.Join(inGo("both", lease.TokenOf(5)), sqlAlone("both", string(lease.TokenOf(6))))
	if stale := inGo("both", lease.TokenOf(5)); err != nil || !errors.Is(stale, fencing.ErrStale) {
		t.Errorf("one mark used in both ways: %v, %v", err, stale)
	}
	for range 2 { // the second time, the mark does not change
		err := pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
			if err := advance(tx, "locked", string(lease.TokenOf(5))); err != nil {
				return err
			}
			_, err := p.Exec(ctx, "set lock_timeout = '200ms'; call lease_advance_mark('locked', '"+string(lease.TokenOf(5))+"')")
			if code(err) != "55P03" {
				t.Errorf("beside another transaction: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	worker := "worker_" + p.Config().ConnConfig.Database
	if _, err := p.Exec(ctx, "create role "+worker+" login; "+grants(t, "worker", worker)+"set role "+worker+"; call lease_advance_mark('a', '09223372036854775807'); reset role"); err != nil {
		t.Errorf("with the grants of the tables: %v", err)
	}
}
