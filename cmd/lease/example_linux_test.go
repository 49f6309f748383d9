package main_test

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedlease/lease/internal/check/shorthand"
)

// The example program leads in one process, and in the other after the first is killed or stopped.
func TestLeaderExample(t *testing.T) {
	program := shorthand.Build(t, ".", "leader")
	begin := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.CommandContext(t.Context(), program, "-store", url, "-duration", "3s")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "waits" {
			t.Fatalf("it said %q", lines.Text())
		}
		return cmd, lines
	}
	token := ""
	cmd, lines := begin()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "leads with token ") || lines.Text() <= token {
			t.Fatalf("it said %q after %q", lines.Text(), token)
		}
		token = lines.Text()
		next, nextLines := begin()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		cmd, lines = next, nextLines
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
