package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// The three processes share the shards, and no shard is lost.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		want := []string{"alice 6 bob 6", "alice 4 bob 4 carol 4", "bob 4 carol 4", "bob 6 carol 6", "carol 12"}
		events := regexp.MustCompile(`(?m)^\d+s  .*$`).Split(out.String(), -1)[1:]
		line := regexp.MustCompile(`(\w+) +works on +(\d+): \w+`)
		if len(events) != len(want) {
			t.Fatalf("got %d events:\n%s", len(events), &out)
		}
		for i, e := range events {
			var got []string
			for _, m := range line.FindAllStringSubmatch(e, -1) {
				got = append(got, m[1]+" "+m[2])
			}
			if strings.Join(got, " ") != want[i] {
				t.Errorf("event %d: %q, want %q", i, got, want[i])
			}
		}
	})
}
