package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// beforeRelease matches the lines of a document that are right only until the first release.
	beforeRelease = regexp.MustCompile(`(?ms)^<!-- unreleased -->\n.*?^<!-- /unreleased -->\n`)

	// unreleasedText matches the statements that a document of a release must not contain.
	unreleasedText = regexp.MustCompile(`(?i)\b(nothing|no|not)\s[^.:;]*\breleased?\s+yet\b|\byet\s+(been\s+)?released\b|\bedit\s+-replace\b|(?m)^<!-- /?unreleased -->$`)
)

// releaseDocument returns the text of a document for a release. The lines between the markers "unreleased"
// become the command that adds the package beside the document to a program, or installs it if its folder
// is in "cmd". If the other lines still say that there is no release, it returns an error.
func releaseDocument(text, packagePath, version string) (string, error) {
	get := "In your module, run\n\n    go get "
	if path.Base(path.Dir(packagePath)) == "cmd" {
		get = "Run\n\n    go install "
	}
	text = beforeRelease.ReplaceAllLiteralString(text, get+packagePath+"@"+version+"\n")
	if at := unreleasedText.FindStringIndex(text); at != nil {
		return "", fmt.Errorf("line %d has %q, and is wrong in a release: delete it, or put it between the lines \"<!-- unreleased -->\" and \"<!-- /unreleased -->\"",
			1+strings.Count(text[:at[0]], "\n"), strings.Join(strings.Fields(text[at[0]:at[1]]), " "))
	}
	return text, nil
}
