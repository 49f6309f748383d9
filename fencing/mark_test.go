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

// A namedMark is a mark with a name.
type namedMark struct{ markFunc }

func (namedMark) String() string { return `mark "a"` }

// The errors about a malformed token or mark say which mark it is, if it has a name.
func TestAdvanceNamesTheMark(t *testing.T) {
	m := namedMark{func(context.Context, lease.Token) (lease.Token, error) { return "x", nil }}
	for shown, want := range map[lease.Token]string{"7": `Token for mark "a" = "7": must be `, tok(7): `mark "a" = "x": must be `} {
		if err := fencing.Advance(t.Context(), m, shown); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s...", err, want)
		}
	}
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
