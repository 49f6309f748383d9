package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// The standby leads first, leaves, and the preferred leader leads until the end. It can begin as soon as
// the slot is released, before the standby has said why it left.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`^standby +leads\nstandby +stops\n(?:standby +had to leave: .*broken.*\npreferred leads|preferred leads\nstandby +had to leave: .*broken.*)\npreferred stops\n$`)
		if !want.MatchString(out.String()) {
			t.Errorf("got\n%s", &out)
		}
	})
}
