package fencing_test

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The package imports only the standard library, the root package and the package with ErrStale.
func TestImports(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") && path != "github.com/fencedlease/lease" && path != "github.com/fencedlease/lease/internal/stale" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if read == 0 {
		t.Error("no file was read")
	}
}
