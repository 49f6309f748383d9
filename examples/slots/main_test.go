package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// The standby leads first, leaves, and the preferred leader leads until the end.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`^standby +leads\nstandby +stops\nstandby +had to leave: .*broken.*\npreferred leads\npreferred stops\n$`)
		if !want.MatchString(out.String()) {
			t.Errorf("got\n%s", &out)
		}
	})
}
