package session_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The package documentation and CONTRIBUTING.md explain the same terms, at most twenty, in the same
// words.
func TestGlossary(t *testing.T) {
	read := func(file, item string) (terms []string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\n//", "\n")
		_, text, _ = strings.Cut(text, "# Terms\n")
		text, _, _ = strings.Cut(text, "\n # ")
		for _, found := range regexp.MustCompile(`(?m)`+item+`([^\n]*(\n +[^ \n-][^\n]*)*)`).FindAllStringSubmatch(text, -1) {
			terms = append(terms, strings.Join(strings.Fields(strings.ReplaceAll(found[1], "**", "")), " "))
		}
		return terms
	}
	doc, contributing := read("doc.go", `^   - `), read("../CONTRIBUTING.md", `^- `)
	if len(doc) == 0 || len(doc) > 20 || strings.Join(doc, "\n") != strings.Join(contributing, "\n") {
		t.Errorf("doc.go explains\n%s\n\nand CONTRIBUTING.md\n%s", strings.Join(doc, "\n"), strings.Join(contributing, "\n"))
	}
}
