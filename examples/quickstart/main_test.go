package main

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease/internal/dice"
)

// The program prints what README.md shows. Its times differ a little, as those of renewals do; here
// they do not.
func TestOutput(t *testing.T) {
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, dice.Steady{IDs: rand.Reader}); err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	})
}
