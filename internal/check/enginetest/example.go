package enginetest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fencedlease/lease"
)

// Build builds an example program of the module in a folder.
func Build(t testing.TB, folder, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", program, "./examples/"+name)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TakesOver runs an example program in which a process takes over the lease of another one that was
// killed. The second token that it prints must be newer than the first.
func TakesOver(t *testing.T, program string, flags ...string) {
	t.Helper()
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
