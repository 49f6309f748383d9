package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each module has one mistake that the compiler for linux/amd64 does not see.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct {
		target, want string
		files        map[string]string
	}{
		{"linux/386", "overflows", map[string]string{"a.go": "package a\n\nfunc f() int { return 1 << 40 }\n"}},
		{"windows/amd64", "undefined: syscall.Flock", map[string]string{"a.go": "package a\n\nimport \"syscall\"\n\nvar A = syscall.Flock\n"}},
		{"windows/amd64", "cannot use", map[string]string{"a.go": "package a\n", "a_windows_test.go": "package a_test\n\nvar A int = \"1\"\n"}},
	} {
		folder := t.TempDir()
		c.files["go.mod"] = "module a\n\ngo 1.24\n"
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := run("linux/amd64", []string{folder}, true); err != nil {
			t.Errorf("%q on linux/amd64: %v", c.want, err)
		}
		if err := run(c.target, []string{folder}, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("run said %v; want an error with %q", err, c.want)
		}
	}
}
