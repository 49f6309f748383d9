package pglease_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples do what they say.
func TestExamples(t *testing.T) {
	url := shared.url(shared.database(t))
	for name, want := range map[string]string{
		"takeover": "second holds it with token",
		"guard":    "is refused: fencing: stale token",
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			if out, err := exec.Command("go", "build", "-o", program, "./examples/"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), program, "-url", url).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("\n%s", out)
		})
	}
}
