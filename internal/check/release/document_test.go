package main

import (
	"strings"
	"testing"
)

// The lines between the markers become a go get or go install line, and all other lines stay. A document
// that says outside of the markers that there is no release is refused, in upper and lower case, and across
// lines.
func TestReleaseDocument(t *testing.T) {
	const block = "<!-- unreleased -->\nThere is no release yet. Run\n\n    go mod edit -replace a=../a\n<!-- /unreleased -->\n"
	for _, c := range []struct{ module, text, want string }{
		{"example.org/a", "# a\n\n" + block + "\nA lease that is not released ends.\n" + block,
			"# a\n\nIn your module, run\n\n    go get example.org/a@v0.1.0\n\nA lease that is not released ends.\nIn your module, run\n\n    go get example.org/a@v0.1.0\n"},
		{"example.org/cmd/a", block, "Run\n\n    go install example.org/cmd/a@v0.1.0\n"},
		{"example.org/a", "It keeps leases.\n", "It keeps leases.\n"},
	} {
		if got, err := releaseDocument(c.text, c.module, "v0.1.0"); err != nil || got != c.want {
			t.Errorf("%v, and the text is\n%s", err, got)
		}
	}
	for _, text := range []string{
		"There is no release yet.", "No Release Yet", "nothing was\nreleased yet", "The library is not released yet.",
		"It has not yet been released.", "    go mod edit -replace a=../a", "<!-- unreleased -->\nThe end is missing.", "<!-- /unreleased -->",
	} {
		if got, err := releaseDocument("# A\n\n"+text+"\n", "example.org/a", "v0.1.0"); err == nil || !strings.Contains(err.Error(), "line 3 has") {
			t.Errorf("%q: %v, and the text is\n%s", text, err, got)
		}
	}
}
