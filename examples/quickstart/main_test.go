package main

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease/internal/dice"
)

// The program prints what README.md shows. The times of renewals are random, so the times that the
// program prints differ a little from run to run, but not in this test.
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
