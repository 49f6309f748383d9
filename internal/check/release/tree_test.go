package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// write makes a file with its folders.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const root = "../../.."

// unreleased matches a requirement of a module of this library without a version.
var unreleased = regexp.MustCompile(`fencedlease/lease\S* v0\.0\.0\n`)

// In the tree of a release, no module has a replace line or requires a module of this library at
// v0.0.0. The documents say how to get a module.
func TestTree(t *testing.T) {
	r, err := makeTree(root, filepath.Join(t.TempDir(), "tree"), "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(unpublished, "pglease", "leasetest/linearize") {
		if r.module(rootPath+"/"+folder) == nil {
			t.Errorf("there is no module %s", folder)
		}
	}
	for _, m := range r.modules {
		goMod, err := os.ReadFile(filepath.Join(r.folder, m.folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(goMod), "replace") || unreleased.Match(goMod) {
			t.Errorf("%s:\n%s", m.path, goMod)
		}
		before, err := os.ReadFile(filepath.Join(root, m.folder, "README.md"))
		if err == nil && strings.Contains(string(before), "edit -replace") {
			readme, err := os.ReadFile(filepath.Join(r.folder, m.folder, "README.md"))
			if err != nil || !strings.Contains(string(readme), "\n    go get "+m.path+"@v0.1.0\n") {
				t.Errorf("%v, and the README of %s is\n%s", err, m.path, readme)
			}
		}
	}
}

func TestTags(t *testing.T) {
	for folder, want := range map[string]string{".": "v0.1.0", "pglease": "pglease/v0.1.0", "a/b": "a/b/v0.1.0"} {
		if got := (&mod{folder: folder}).tag("v0.1.0"); got != want {
			t.Errorf("the tag of %s is %s, want %s", folder, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	taken := t.TempDir()
	for want, args := range map[string][2]string{
		"must be of the form v1.2.3": {"0.1.0", filepath.Join(t.TempDir(), "tree")},
		"-out is missing":            {"v0.1.0", ""},
		"must not exist":             {"v0.1.0", taken},
	} {
		if _, err := makeTree(root, args[1], args[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	}
}
