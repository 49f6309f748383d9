package main

import (
	"strings"
	"testing"
)

// The lines between the markers become a go get line, and all other lines stay.
func TestReleaseDocument(t *testing.T) {
	const (
		before = "# pglease\n\nIt keeps leases.\n\n"
		after  = "\nThen import it. A lease that is not released ends by itself.\n"
		block  = "<!-- unreleased -->\nThere is no release yet. Run\n\n    go mod edit -replace a=../a\n<!-- /unreleased -->\n"
	)
	got, err := releaseDocument(before+block+after+block, "example.org/a", "v0.1.0")
	const run = "In your module, run\n\n    go get example.org/a@v0.1.0\n"
	if err != nil || got != before+run+after+run {
		t.Errorf("%v, and the text is\n%s", err, got)
	}
	if got, err := releaseDocument(block, "example.org/cmd/a", "v0.1.0"); err != nil || got != "Run\n\n    go install example.org/cmd/a@v0.1.0\n" {
		t.Errorf("a command: %v, and the text is\n%s", err, got)
	}
	if got, err := releaseDocument(before+after, "example.org/a", "v0.1.0"); err != nil || got != before+after {
		t.Errorf("without markers: %v, and the text is\n%s", err, got)
	}
}

// releaseDocument returns an error if a document says outside of the markers that there is no
// release. releaseDocument finds this statement in upper and lower case, and across lines.
func TestDocumentsThatAreWrongInARelease(t *testing.T) {
	for _, text := range []string{
		"There is no release yet.",
		"No Release Yet",
		"Nothing is released yet.",
		"nothing was\nreleased yet",
		"The library is not released yet.",
		"It has not yet been released.",
		"    go mod edit -replace a=../a",
		"<!-- unreleased -->\nThe end is missing.",
		"<!-- /unreleased -->",
	} {
		if got, err := releaseDocument("# A\n\n"+text+"\n", "example.org/a", "v0.1.0"); err == nil || !strings.Contains(err.Error(), "line 3 has") {
			t.Errorf("%q: %v, and the text is\n%s", text, err, got)
		}
	}
}
