package redislease_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds an example program.
func build(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", program, "./examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// The example programs do what their documentation says.
func TestExamples(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	for name, want := range map[string]string{
		"takeover": "second holds it with token",
		"guard":    "is refused: fencing: stale token",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), build(t, name), "-url", "redis://"+server.Addr()).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("\n%s", out)
		})
	}
}

// If an example program cannot get the lease, it says why.
func TestExampleSaysWhatFails(t *testing.T) {
	t.Parallel()
	takeover := build(t, "takeover")
	for _, url := range []string{"redis://127.0.0.1:1", "localhost:6379"} {
		if said, err := exec.CommandContext(t.Context(), takeover, "-url", url).CombinedOutput(); err == nil || !strings.Contains(string(said), url) || !strings.Contains(string(said), "-url") {
			t.Errorf("%s: %q, %v", url, said, err)
		}
	}
	server := ownServer(t, "--maxmemory-policy", "allkeys-lru")
	cmd := exec.CommandContext(t.Context(), takeover, "-url", "redis://"+server.Addr(), "-process", "first")
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
	if !strings.Contains(line, "maxmemory-policy allkeys-lru") {
		t.Errorf("%q, %v", line, err)
	}
}
