//go:build unix

package sqlitelease_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The example program leads in one process, and in the other after the first is stopped or killed.
func TestExample(t *testing.T) {
	program := filepath.Join(t.TempDir(), "leader")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/leader").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := newPath(t)
	begin := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.CommandContext(t.Context(), program, "-file", path, "-duration", "2s")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "waits") {
			t.Fatalf("it said %q", lines.Text())
		}
		return cmd, lines
	}
	cmd, lines := begin()
	token := ""
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		if !lines.Scan() || lines.Text() <= token {
			t.Fatalf("it said %q after %q", lines.Text(), token)
		}
		token = lines.Text()
		next, nextLines := begin()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); (err == nil) != (signal == syscall.SIGTERM) {
			t.Errorf("%v: %v", signal, err)
		}
		cmd, lines = next, nextLines
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
