package lease_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The program of README.md compiles, and its test passes. They stand there without their
// imports, and are compiled as a package of this module, in a directory that has no other.
func TestReadme(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		name := "main.go"
		if strings.Contains(block[1], "*testing.T") {
			name = "main_test.go"
		}
		file, seen := filepath.Join(root, "testdata", name), filepath.Join(t.TempDir(), name)
		if replace[file] != "" {
			t.Fatalf("README.md has two programs that would be %s", name)
		}
		replace[file] = seen
		if err := os.WriteFile(seen, []byte(withImports(block[1])), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if len(replace) != 2 {
		t.Fatalf("README.md has %d programs, want one and a test", len(replace))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-v", "-overlay", file, "./testdata"}
	if raced {
		args = slices.Insert(args, 1, "-race") // as what it imports has been compiled
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: ") {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// withImports makes a file of declarations that use packages by their names.
func withImports(declarations string) string {
	const module = "github.com/fencedlease/lease"
	var b strings.Builder
	b.WriteString("package main\n\n")
	for _, p := range []string{
		"context", "errors", "log", "os", "os/signal", "testing", "testing/synctest", "time",
		module, module + "/fencing", module + "/leasefault", module + "/memory", module + "/session",
	} {
		if regexp.MustCompile(`\b` + path.Base(p) + `\.[A-Z]`).MatchString(declarations) {
			b.WriteString("import \"" + p + "\"\n")
		}
	}
	return b.String() + declarations
}
