package pglease_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A copy that waits in vain says why.
func TestExampleSaysWhatFails(t *testing.T) {
	program := filepath.Join(t.TempDir(), "takeover")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/takeover").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "-url", shared.URL("postgres"), "-copy", "first")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !strings.Contains(line, "run the statements of pglease.Schema") {
		t.Errorf("%q, %v", line, err)
	}
}

// The examples do what they say.
func TestExamples(t *testing.T) {
	url := shared.URL(shared.Database(t))
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
