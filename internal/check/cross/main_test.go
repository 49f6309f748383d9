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
		name, target, want string
		files              map[string]string
	}{
		{"a conversion in the body of a function", "linux/386", "overflows", map[string]string{
			"a.go": "package a\n\nfunc f() int { return 1 << 40 }\n"}},
		{"a function that only Linux has", "windows/amd64", "undefined: syscall.Flock", map[string]string{
			"a.go": "package a\n\nimport \"syscall\"\n\nvar A = syscall.Flock\n"}},
		{"a mistake in a file for another system", "windows/amd64", "cannot use", map[string]string{
			"a.go": "package a\n", "a_windows.go": "package a\n\nvar A int = \"1\"\n"}},
		{"a mistake in an external test", "linux/386", "overflows", map[string]string{
			"a.go": "package a\n\nvar A int\n", "a_test.go": "package a_test\n\nimport \"a\"\n\nfunc f() { a.A = 1 << 40 }\n"}},
		{"a mistake in a second package", "linux/386", "overflows", map[string]string{
			"a.go": "package a\n\nimport \"a/b\"\n\nvar A = b.B\n", "b/b.go": "package b\n\nvar B int = 1 << 40\n"}},
		{"no file for a system", "windows/amd64", "build constraints exclude all Go files", map[string]string{
			"a.go": "package a\n\nimport _ \"a/b\"\n", "b/b_linux.go": "package b\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := module(t, c.files)
			if err := run("linux/amd64", []string{folder}); err != nil {
				t.Errorf("on linux/amd64: %v", err)
			}
			if err := run(c.target, []string{folder}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run said %v; want an error with %q", err, c.want)
			}
		})
	}
}

// Two modules share the types of the packages that both import, but not of packages that differ.
func TestModulesSideBySide(t *testing.T) {
	right := module(t, map[string]string{"a.go": "package a\n\nimport \"a/b\"\n\nvar A int = b.B\n", "b/b.go": "package b\n\nimport \"time\"\n\nvar B = time.Now().Day()\n"})
	wrong := module(t, map[string]string{"a.go": "package a\n\nimport \"a/b\"\n\nvar A int = b.B\n", "b/b.go": "package b\n\nimport \"time\"\n\nvar B = time.Now().String()\n"})
	err := run("windows/amd64", []string{right, wrong, right})
	if err == nil || strings.Count(err.Error(), "cannot use") != 1 || !strings.Contains(err.Error(), wrong) {
		t.Errorf("run said %v; want one error, of %s", err, wrong)
	}
}

// module writes a module named a into a new folder.
func module(t *testing.T, files map[string]string) string {
	folder := t.TempDir()
	files["go.mod"] = "module a\n\ngo 1.24\n"
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
