//go:build unix

package sqlitelease_test

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedlease/lease/internal/check/shorthand"
)

// begin starts an example program, and returns what it prints.
func begin(t *testing.T, program string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// The example program leads in one process, and in the other after the first is stopped or killed.
func TestExample(t *testing.T) {
	program := shorthand.Build(t, ".", "leader")
	path := newPath(t)
	one := func() (*exec.Cmd, *bufio.Scanner) {
		cmd, lines := begin(t, program, "-file", path, "-duration", "2s")
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "waits") {
			t.Fatalf("it said %q", lines.Text())
		}
		return cmd, lines
	}
	cmd, lines := one()
	token := ""
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		if !lines.Scan() || lines.Text() <= token {
			t.Fatalf("it said %q after %q", lines.Text(), token)
		}
		token = lines.Text()
		next, nextLines := one()
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

// The example program shares the twelve names among two processes. When one is killed, the other takes
// its names, and can be stopped.
func TestShardsExample(t *testing.T) {
	program := shorthand.Build(t, ".", "shards")
	path := newPath(t)
	// until reads what a process says until it works on n names.
	until := func(lines *bufio.Scanner, names map[string]bool, n int) {
		t.Helper()
		for len(names) != n {
			if !lines.Scan() {
				t.Fatalf("it ended, and worked on %v", names)
			}
			if name, leaves := strings.CutPrefix(lines.Text(), "leaves "); leaves {
				delete(names, name)
			} else {
				names[strings.Fields(lines.Text())[2]] = true
			}
		}
	}
	one, oneLines := begin(t, program, "-file", path, "-duration", "3s")
	had, has := map[string]bool{}, map[string]bool{}
	until(oneLines, had, 12)
	two, twoLines := begin(t, program, "-file", path, "-duration", "3s")
	until(twoLines, has, 6)
	until(oneLines, had, 6)
	for name := range had {
		if has[name] {
			t.Errorf("both work on %s", name)
		}
	}
	_ = one.Process.Kill()
	_ = one.Wait()
	until(twoLines, has, 12)
	_ = two.Process.Signal(syscall.SIGTERM)
	until(twoLines, has, 0)
	if err := two.Wait(); err != nil {
		t.Error(err)
	}
}
