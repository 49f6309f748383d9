package etcdtest

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// takeover builds the example.
func takeover(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "takeover")
	build := exec.Command("go", "build", "-o", program, "./examples/takeover")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// The example program does what its documentation says.
func TestExample(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), takeover(t), "-endpoints", shared.Client).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	tokens := regexp.MustCompile(`token +(\d{20})`).FindAllStringSubmatch(string(out), -1)
	if len(tokens) != 2 || lease.Token(tokens[1][1]).Compare(lease.Token(tokens[0][1])) <= 0 {
		t.Errorf("its tokens are %v", tokens)
	}
}

// Without a server, the example program says what is wrong.
func TestExampleSaysWhatFails(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), takeover(t), "-endpoints", "127.0.0.1:1").CombinedOutput()
	if err == nil {
		t.Error("it ended without an error")
	}
	if want := "no answer in time from 127.0.0.1:1: check that the endpoints are correct"; !strings.Contains(string(out), want) {
		t.Errorf("it said %q, without %q", out, want)
	}
}

// Two processes share only the store. The process that holds the lease is killed without warning,
// and the second process takes over with a newer token. The test then starts a new process, and
// kills the new holder, again and again.
func TestProcessesTakeOver(t *testing.T) {
	t.Parallel()
	program := takeover(t)
	startProcess := func(name string) (*exec.Cmd, *bufio.Scanner) {
		c := exec.CommandContext(t.Context(), program, "-endpoints", shared.Client, "-name", t.Name(), "-process", name)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		if !said.Scan() || said.Text() != "waits" {
			t.Fatalf("%s says %q, %v", name, said.Text(), said.Err())
		}
		return c, said
	}
	kill := func(c *exec.Cmd) {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("a process was to be killed: %v", err)
		}
	}
	holder, said := startProcess("process-1")
	var newest lease.Token
	for _, name := range []string{"process-2", "process-3", "process-4"} {
		if !said.Scan() {
			t.Fatalf("the process before %s ended: %v", name, said.Err())
		}
		tok := lease.Token(said.Text())
		if tok.Validate() != nil || tok.Compare(newest) <= 0 {
			t.Errorf("token %q after %q", tok, newest)
		}
		newest = tok
		contender, next := startProcess(name)
		kill(holder)
		holder, said = contender, next
	}
	kill(holder)
}
