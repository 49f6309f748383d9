package etcdtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example does what it says.
func TestExample(t *testing.T) {
	program := filepath.Join(t.TempDir(), "takeover")
	build := exec.Command("go", "build", "-o", program, "./examples/takeover")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "-endpoints", strings.TrimPrefix(shared.Client, "http://")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "second holds it with token") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
}
