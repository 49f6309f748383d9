package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

type markFunc func(context.Context, lease.Token) (lease.Token, error)

func (f markFunc) Advance(ctx context.Context, tok lease.Token) (lease.Token, error) {
	return f(ctx, tok)
}

// SPEC G1, G4.
func TestAdvanceTable(t *testing.T) {
	unreachable := errors.New("store unreachable")
	for _, c := range []struct {
		name   string
		shown  lease.Token
		answer lease.Token
		err    error
		want   error
	}{
		{"raised", tok(7), tok(7), nil, nil},
		{"stale", tok(7), tok(8), nil, fencing.ErrStale},
		{"stale, by a digit", tok(9), tok(10), nil, fencing.ErrStale},
		{"store fails", tok(7), "", unreachable, unreachable},
		{"store fails, though with an answer", tok(7), tok(7), unreachable, unreachable},
		{"mark that did not rise", tok(7), tok(6), nil, lease.ErrCorrupt},
		{"mark that is empty", tok(7), "", nil, lease.ErrCorrupt},
		{"mark that sorts above every token", tok(7), "zzzzzzzzzzzzzzzzzzzz", nil, lease.ErrCorrupt},
		{"mark that is endless", tok(7), lease.Token(strings.Repeat("9", 1<<20)), nil, lease.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			type key struct{}
			ctx := context.WithValue(t.Context(), key{}, c.name)
			err := fencing.Advance(ctx, markFunc(func(got context.Context, tok lease.Token) (lease.Token, error) {
				if got != ctx || tok != c.shown {
					t.Errorf("Advance(%v, %q)", got, tok)
				}
				return c.answer, c.err
			}), c.shown)
			if !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			var field *lease.FieldError
			refused := lease.FieldError{Field: "Mark", Value: fmt.Sprintf("%.80q", c.answer), Bound: "must be a token not older than " + string(c.shown), Code: lease.ErrCorrupt}
			if errors.As(err, &field) && *field != refused {
				t.Errorf("err = %+v, want %+v", field, refused)
			}
			var stale *fencing.StaleError
			if errors.As(err, &stale) && *stale != (fencing.StaleError{Shown: c.shown, Seen: c.answer}) {
				t.Errorf("err = %+v", stale)
			}
		})
	}
	for _, bad := range malformed {
		err := fencing.Advance(t.Context(), markFunc(func(context.Context, lease.Token) (lease.Token, error) {
			t.Errorf("the mark was shown %q", bad)
			return bad, nil
		}), bad)
		if lease.CodeOf(err) != lease.ErrToken {
			t.Errorf("Advance(%q) = %v, want ErrToken", bad, err)
		}
	}
}

// versions is a store with snapshot isolation: a transaction reads the rows that were committed
// when it began. A transaction cannot commit if another transaction has committed a write to one of
// the rows that it writes. Rows that a transaction only reads do not matter.
type versions struct {
	rows    map[string]string
	written map[string]int // maps each row to the number of the commit that wrote it
	commits int
}

func newVersions() *versions {
	return &versions{rows: map[string]string{"data": "0"}, written: map[string]int{}}
}

func (s *versions) begin() *transaction {
	tx := &transaction{store: s, began: s.commits, seen: map[string]string{}, writes: map[string]string{}}
	for k, v := range s.rows {
		tx.seen[k] = v
	}
	return tx
}

type transaction struct {
	store        *versions
	began        int
	seen, writes map[string]string
}

func (tx *transaction) get(row string) string {
	if v, ok := tx.writes[row]; ok {
		return v
	}
	return tx.seen[row]
}

func (tx *transaction) commit() error {
	for row := range tx.writes {
		if tx.store.written[row] > tx.began {
			return errors.New("another transaction wrote " + row)
		}
	}
	tx.store.commits++
	for row, v := range tx.writes {
		tx.store.rows[row], tx.store.written[row] = v, tx.store.commits
	}
	return nil
}

// A rowMark stores the mark in a row. A lazy rowMark writes the row only if the mark rises.
type rowMark struct {
	tx   *transaction
	lazy bool
}

func (m rowMark) Advance(_ context.Context, tok lease.Token) (lease.Token, error) {
	seen := lease.Token(m.tx.get("mark"))
	if c := seen.Compare(tok); c < 0 || c == 0 && !m.lazy {
		seen = tok
		m.tx.writes["mark"] = string(tok)
	}
	return seen, nil
}

// A Mark must exclude other transactions even if the mark does not rise. The test plays every order
// of the steps of one race, with a Mark that always writes its row and with a Mark that only reads
// its row.
//
// SPEC G3.
func TestEqualMarkIsWritten(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		lost := 0
		for mask := range 1 << 6 { // which of the two holders takes each step
			s := newVersions()
			if err := addOne(t, s, tok(1), lazy); err != nil { // the older holder has already written once
				t.Fatal(err)
			}
			var tx *transaction
			var newerRead string
			older := []func(){
				func() { tx = s.begin() },
				func() {
					if fencing.Advance(t.Context(), rowMark{tx, lazy}, tok(1)) != nil {
						tx = nil
					}
				},
				func() {
					if tx != nil {
						tx.writes["data"] = tx.get("data") + "+older"
						_ = tx.commit() // the older holder ignores the result of the commit
					}
				},
			}
			newer := []func(){
				func() {
					advance := s.begin()
					if err := fencing.Advance(t.Context(), rowMark{advance, lazy}, tok(2)); err != nil {
						t.Fatal(err)
					}
					if advance.commit() != nil {
						newerRead = "refused"
					}
				},
				func() {
					if newerRead != "refused" {
						newerRead = s.rows["data"]
					}
				},
				func() {
					if newerRead != "refused" && s.rows["data"] != newerRead {
						lost++ // the data changed after the newer holder had read it
					}
				},
			}
			for i := range 6 {
				steps := &older
				if mask>>i&1 == 1 {
					steps = &newer
				}
				if len(*steps) > 0 {
					(*steps)[0]()
					*steps = (*steps)[1:]
				}
			}
		}
		if (lost > 0) != lazy {
			t.Errorf("lazy %v: the data changed after Advance in %d orders", lazy, lost)
		}
	}
}

func addOne(t *testing.T, s *versions, shown lease.Token, lazy bool) error {
	tx := s.begin()
	if err := fencing.Advance(t.Context(), rowMark{tx, lazy}, shown); err != nil {
		return err
	}
	tx.writes["data"] = tx.get("data") + "+1"
	return tx.commit()
}

// G3: after a crash at any step, the mark is not older than the data. The test fails for a store
// that writes the mark separately, after the data.
//
// SPEC G3.
func TestMarkAfterACrash(t *testing.T) {
	errCrash := errors.New("crash")
	for _, apart := range []bool{false, true} {
		admitted := 0
		for crash := range 4 {
			s := newVersions()
			steps := 0
			step := func() error {
				if steps++; steps == crash {
					return errCrash
				}
				return nil
			}
			write := func(shown lease.Token, data string) error {
				tx := s.begin()
				if err := fencing.Advance(t.Context(), rowMark{tx: tx}, shown); err != nil {
					return err
				}
				if err := step(); err != nil {
					return err
				}
				tx.writes["data"] = data
				if apart {
					mark := s.begin()
					mark.writes["mark"] = tx.writes["mark"]
					delete(tx.writes, "mark")
					if err := tx.commit(); err != nil {
						return err
					}
					if err := step(); err != nil {
						return err
					}
					return mark.commit()
				}
				if err := tx.commit(); err != nil {
					return err
				}
				return step()
			}
			newer := write(tok(2), "newer")
			wrote := s.rows["data"] == "newer"
			if crash > 0 && crash < 3 && newer != errCrash {
				t.Fatalf("step %d: %v, want the crash", crash, newer)
			}
			older := write(tok(1), "older")
			if wrote && older == nil {
				admitted++
			}
			if !wrote && older != nil {
				t.Errorf("step %d: %v, though the newer write left nothing behind", crash, older)
			}
		}
		if (admitted > 0) != apart {
			t.Errorf("mark apart %v: an older write was admitted after %d crashes", apart, admitted)
		}
	}
}

// If a transaction is rolled back, its mark is not raised.
//
// SPEC G3.
func TestRolledBackWrite(t *testing.T) {
	s := newVersions()
	tx := s.begin()
	if err := fencing.Advance(t.Context(), rowMark{tx: tx}, tok(9)); err != nil {
		t.Fatal(err)
	}
	if err := addOne(t, s, tok(8), false); err != nil { // tx was never committed
		t.Errorf("after a roll back: %v", err)
	}
	if got := fmt.Sprint(s.rows); got != fmt.Sprint(map[string]string{"data": "0+1", "mark": string(tok(8))}) {
		t.Errorf("the store holds %v", got)
	}
	if err := tx.commit(); err == nil {
		t.Error("a transaction committed over the mark of another")
	}
}
