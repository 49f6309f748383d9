package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// TestMark tests the marks of a database, which are advanced in the transaction that writes the data. The
// function within begins a transaction, calls f with the mark of the given name, and commits the transaction.
// If f returns an error, within rolls the transaction back, and returns the error. TestMark uses the names "a",
// "A", "a ", "b" and "c".
func TestMark(t *testing.T, within func(name string, f func(fencing.Mark) error) error) {
	t.Helper()
	advance := func(ctx context.Context, name string, epoch uint64, then error) error {
		return within(name, func(m fencing.Mark) error {
			return errors.Join(fencing.Advance(ctx, m, lease.TokenOf(epoch)), then)
		})
	}
	rollback := errors.New("roll back")
	for _, c := range []struct {
		name       string
		epoch      uint64
		then, want error
	}{
		{"a", 9, nil, nil}, {"a", 9, nil, nil}, {"a", 10, nil, nil}, {"a", 9, nil, fencing.ErrStale}, {"A", 1, nil, nil}, {"a ", 1, nil, nil},
		{"a", 12, rollback, rollback}, {"a", 11, nil, nil}, {"a", 10, nil, fencing.ErrStale}, {"a\x00", 1, nil, lease.ErrName}, {"b", 0, nil, lease.ErrToken},
	} {
		err := advance(t.Context(), c.name, c.epoch, c.then)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%q %d: %v, want %v", c.name, c.epoch, err, c.want)
		}
		if stale := new(fencing.StaleError); errors.As(err, &stale) && stale.Seen.Compare(lease.TokenOf(c.epoch)) <= 0 {
			t.Errorf("%q %d: %v does not tell what was seen", c.name, c.epoch, err)
		}
	}
	for range 2 { // the second time, the mark already exists
		err := within("c", func(m fencing.Mark) error {
			err := fencing.Advance(t.Context(), m, lease.TokenOf(5))
			for _, epoch := range []uint64{4, 5, 6} {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				if err := advance(ctx, "c", epoch, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("token %d beside a transaction with 5: %v", epoch, err)
				}
				cancel()
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
