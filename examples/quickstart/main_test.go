package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// The program prints what README.md shows.
func TestOutput(t *testing.T) {
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	})
}
