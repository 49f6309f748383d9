package pglease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
)

// transactions returns, for each kind of transaction, a function that runs another function in one.
func transactions(t *testing.T) map[string]func(name string, f func(fencing.Mark) error) error {
	p := pool(t, shared.URL(shared.Database(t)))
	db := stdlib.OpenDBFromPool(p)
	t.Cleanup(func() { db.Close() })
	return map[string]func(name string, f func(fencing.Mark) error) error{
		"Mark": func(name string, f func(fencing.Mark) error) error {
			return pgx.BeginFunc(context.Background(), p, func(tx pgx.Tx) error { return f(pglease.Mark(tx, name)) })
		},
		"MarkSQL": func(name string, f func(fencing.Mark) error) error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := f(pglease.MarkSQL(tx, name)); err != nil {
				return err
			}
			return tx.Commit()
		},
	}
}

// SPEC G1, G3, G4, G5. While a transaction has locked the mark, another one waits, whatever its token.
func TestMark(t *testing.T) {
	rollback := errors.New("roll back")
	for what, begin := range transactions(t) {
		advance := func(ctx context.Context, name string, epoch uint64, then error) error {
			return begin(name, func(m fencing.Mark) error {
				return errors.Join(fencing.Advance(ctx, m, lease.TokenOf(epoch)), then)
			})
		}
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
			if err := advance(t.Context(), what+c.name, c.epoch, c.then); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s %s %d: %v, want %v", what, c.name, c.epoch, err, c.want)
			}
		}
		err := begin("a\x00b", func(m fencing.Mark) error { return fencing.Advance(t.Context(), m, lease.TokenOf(1)) })
		if lease.CodeOf(err) != lease.ErrName {
			t.Errorf("%s: %v, want the error of CheckName", what, err)
		}
		var stale *fencing.StaleError
		if err := advance(t.Context(), what+"a", 3, nil); !errors.As(err, &stale) || stale.Seen != lease.TokenOf(11) {
			t.Errorf("%s: %v does not tell what was seen", what, err)
		}
		for range 2 { // the second time, the mark already exists
			err := begin(what+"c", func(m fencing.Mark) error {
				if err := fencing.Advance(t.Context(), m, lease.TokenOf(5)); err != nil {
					return err
				}
				for _, epoch := range []uint64{4, 5, 6} {
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					if err := advance(ctx, what+"c", epoch, nil); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: token %d beside 5: %v", what, epoch, err)
					}
					cancel()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}
