package sdktest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedlease/lease/internal/check/engines/azurite"
)

// A program contains the values that the running command printed.
type program struct{ connection, clock, certificate string }

// startProgram builds the command and runs it with a manual clock, as a user of another language does.
func startProgram(t *testing.T, args ...string) (p program) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "blobtest")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/fencedlease/lease/blobtest/cmd/blobtest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, append([]string{"-addr", "127.0.0.1:0", "-clock", "manual", "-quiet"}, args...)...)
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
	for s := bufio.NewScanner(stdout); p.connection == "" && s.Scan(); {
		switch name, rest, _ := strings.Cut(s.Text(), ": "); name {
		case "clock":
			p.clock, _, _ = strings.Cut(rest, " ")
		case "certificate":
			p.certificate = rest
		default:
			p.connection = s.Text()
		}
	}
	return p
}

// Through the JavaScript SDK, every cell of the tables has the expected outcome, for blobs and for
// containers. The test moves the clock of the command over HTTP.
func TestJavaScriptSDK(t *testing.T) {
	p := startProgram(t)
	out, err := exec.CommandContext(t.Context(), "node", "testdata/cells.mjs", azurite.Modules(t), "../../../../blobtest/testdata/cells.json", p.connection, p.clock).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "200 cells" {
		t.Errorf("%s\nwant 200 cells and nothing else", got)
	}
}

// The JavaScript SDK trusts the certificate that the command made, acquires a lease over HTTPS, and gets
// the properties of the account.
func TestJavaScriptSDKOverTLS(t *testing.T) {
	p := startProgram(t, "-tls")
	cmd := exec.CommandContext(t.Context(), "node", "testdata/tls.mjs", azurite.Modules(t), p.connection)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+p.certificate)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "Standard_LRS 2009-09-19 5 Cool container" {
		t.Errorf("%s", got)
	}
}
