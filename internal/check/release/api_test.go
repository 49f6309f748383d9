package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The command api reports the changes that break programs and the changes that do not, and ignores
// internal packages and commands.
func TestCompare(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	for _, folder := range []string{before, after} {
		write(t, filepath.Join(folder, "go.mod"), "module example.org/m\n\ngo 1.26\n")
	}
	for file, text := range map[string]string{
		"m.go":          "package m\n\nfunc Kept(int) {}\n\nfunc Removed() {}\n\nfunc Changed(int) {}\n",
		"old/old.go":    "package old\n",
		"internal/i.go": "package internal\n\nfunc Removed() {}\n",
		"cmd/main.go":   "package main\n\nfunc Removed() {}\n\nfunc main() {}\n",
	} {
		write(t, filepath.Join(before, file), text)
	}
	for file, text := range map[string]string{
		"m.go":          "package m\n\nfunc Kept(int) {}\n\nfunc Added() {}\n\nfunc Changed(string) {}\n",
		"internal/i.go": "package internal\n",
		"cmd/main.go":   "package main\n\nfunc main() {}\n",
		"new/new.go":    "package new\n",
	} {
		write(t, filepath.Join(after, file), text)
	}
	changes, err := compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprint(c))
	}
	want := []string{
		"compatible: example.org/m/new: the package was added",
		"compatible: example.org/m: Added: added",
		"incompatible: example.org/m/old: the package was removed",
		"incompatible: example.org/m: Changed: changed from func(int) to func(string)",
		"incompatible: example.org/m: Removed: removed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	listed, silent := filepath.Join(t.TempDir(), "listed"), filepath.Join(t.TempDir(), "silent")
	write(t, listed, "# Changelog\n\n## Unreleased\n\n### Incompatible\n\n- all\n\n## v0.1.0\n")
	write(t, silent, "# Changelog\n\n## Unreleased\n\n- all\n\n## v0.1.0\n\n### Incompatible\n")
	for _, c := range []struct {
		args []string
		want string // "" if the command accepts the changes
	}{
		{nil, "describe them in CHANGELOG.md"},
		{[]string{"-changelog", silent}, "describe them in CHANGELOG.md"},
		{[]string{"-changelog", listed}, ""},
		{[]string{"-last", "v0.1.0", "-next", "v0.1.1"}, "choose a new minor version"},
		{[]string{"-last", "v0.1.0", "-next", "v0.2.0"}, ""},
		{[]string{"-last", "v0.9.0", "-next", "v1.0.0"}, ""},
		{[]string{"-last", "v1.1.0", "-next", "v1.2.0"}, "then a new major one"},
		{[]string{"-last", "v1.1.0", "-next", "v2.0.0"}, ""},
	} {
		err := run(slices.Concat([]string{"api", "-old", before, "-new", after}, c.args))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.args, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want: %s", c.args, err, c.want)
		}
	}
	if !testing.Short() { // takes minutes
		if err := run([]string{"api", "-old", root, "-new", root}); err != nil {
			t.Errorf("the checkout beside itself: %v", err)
		}
	}
}
