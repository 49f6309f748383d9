package lease_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
)

// SPEC R5.
func TestToken(t *testing.T) {
	for epoch, want := range map[uint64]lease.Token{
		0:             "",
		1:             "00000000000000000001",
		9:             "00000000000000000009",
		10:            "00000000000000000010",
		math.MaxInt64: "09223372036854775807",
	} {
		got := lease.TokenOf(epoch)
		if got != want || (lease.Record{Epoch: epoch}).Token() != want {
			t.Errorf("TokenOf(%d) = %q, want %q", epoch, got, want)
		}
		back, err := got.Epoch()
		if back != epoch || (err == nil) != (epoch != 0) || (got.Validate() == nil) != (epoch != 0) {
			t.Errorf("%q: %d, %v", got, back, err)
		}
	}
	for _, s := range []lease.Token{
		"", "1", "00000000000000000000", "0000000000000000001", "000000000000000000001",
		"+0000000000000000001", "-0000000000000000001", "0000000000000000000a", "0x000000000000000001",
		"0000_000000000000001", " 0000000000000000001", "09223372036854775808", "18446744073709551615",
		"99999999999999999999", "٠٠٠٠٠٠٠٠٠١", lease.Token(strings.Repeat("9", 1<<16)),
	} {
		n, err := s.Epoch()
		var field *lease.FieldError
		if n != 0 || !errors.Is(err, lease.ErrToken) || !errors.As(err, &field) || s.Validate() == nil {
			t.Errorf("%q: %d, %v", s, n, err)
		}
		if s.Compare(lease.TokenOf(1)) != -1 || lease.TokenOf(1).Compare(s) != 1 {
			t.Errorf("%q outranks a grant", s)
		}
	}
	if lease.Token("a").Compare("b") != -1 || lease.Token("").Compare("") != 0 {
		t.Error("malformed tokens do not sort as strings")
	}
}

// SPEC R5: Compare orders tokens as numbers, and as strings.
func TestTokenOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs := rapid.SliceOfN(rapid.Uint64Range(1, math.MaxInt64), 2, 20).Draw(t, "epochs")
		slices.Sort(epochs)
		for i, a := range epochs {
			for j, b := range epochs {
				x, y := lease.TokenOf(a), lease.TokenOf(b)
				if x.Compare(y) != cmp.Compare(a, b) || cmp.Compare(x, y) != cmp.Compare(a, b) {
					t.Fatalf("%d, %d: %d against %d", i, j, a, b)
				}
			}
		}
	})
}
