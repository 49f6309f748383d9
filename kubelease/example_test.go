package kubelease_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
)

// example builds an example program, and writes a kubeconfig for the program.
func example(t *testing.T, which string) (program string, flags []string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), which)
	if out, err := exec.Command("go", "build", "-o", program, "./examples/"+which).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, shared.Address, kubeserver.Admin)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return program, []string{"-kubeconfig", kubeconfig, "-namespace", namespace, "-name", objectOf(t)}
}

// The example program kills the process that leads, and the second process leads with a newer
// token.
func TestLeaderExample(t *testing.T) {
	t.Parallel()
	program, flags := example(t, "leader")
	out, err := exec.CommandContext(t.Context(), program, flags...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	tokens := regexp.MustCompile(`token +(\d{20})`).FindAllStringSubmatch(string(out), -1)
	if len(tokens) != 2 || lease.Token(tokens[1][1]).Compare(lease.Token(tokens[0][1])) <= 0 {
		t.Errorf("its tokens are %v", tokens)
	}
}

// The example program moves from client-go's elector to this library, and never has two leaders.
func TestRollingExample(t *testing.T) {
	t.Parallel()
	program, flags := example(t, "rolling")
	out, err := exec.CommandContext(t.Context(), program, flags...).CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, "old-") || !regexp.MustCompile(`new-\d leads, token \d{20}`).MatchString(text) {
		t.Error("not both kinds have led")
	}
}

// Several processes share only the object. The process that leads is killed without warning, and
// another process leads with a newer token. The test then starts a new process, and kills the new
// leader, again and again.
func TestProcessesTakeOver(t *testing.T) {
	t.Parallel()
	program, flags := example(t, "leader")
	startProcess := func(name string) (*exec.Cmd, *bufio.Scanner) {
		c := exec.CommandContext(t.Context(), program, append(flags, "-process", name)...)
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
	for _, name := range []string{"process-2", "process-3"} {
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
