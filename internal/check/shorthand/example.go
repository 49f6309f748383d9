package shorthand

import (
	"os/exec"
	"path/filepath"
	"testing"
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
