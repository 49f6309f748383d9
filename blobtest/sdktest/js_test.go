package sdktest

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startProgram builds the command and runs it with a manual clock, as a user of another
// language does. It returns what such a user needs.
func startProgram(t *testing.T) (connection, clock string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "blobtest")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/fencedlease/lease/blobtest/cmd/blobtest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, "-addr", "127.0.0.1:0", "-clock", "manual", "-quiet")
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after an interrupt: %v\n%s", err, &log)
		}
	})
	for s := bufio.NewScanner(stdout); connection == "" && s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "clock: "); ok {
			clock, _, _ = strings.Cut(rest, " ")
		} else {
			connection = s.Text()
		}
	}
	return connection, clock
}

// Every cell of the tables, on blobs and on containers, through the JavaScript SDK against
// the command, with its clock moved over HTTP.
func TestJavaScriptSDK(t *testing.T) {
	connection, clock := startProgram(t)
	out, err := exec.CommandContext(t.Context(), "node", "testdata/cells.mjs", modules, "../testdata/cells.txt", connection, clock).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "200 cells" {
		t.Errorf("%s\nwant 200 cells and nothing else", got)
	}
}
