package azuretest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

// server starts a blobtest server whose clock runs in real time.
func server(t testing.TB) *blobtest.Server {
	t.Helper()
	s, err := blobtest.NewServer(nil, &blobtest.Options{Clock: blobtest.NewFastClock(time.Now(), 1), Containers: []string{box}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// built builds an example program.
func built(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", program, "./examples/"+name)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// example builds an example program and runs it against a server.
func example(t *testing.T, name string) string {
	t.Helper()
	s := server(t)
	connection := "AccountName=" + s.Account + ";AccountKey=" + s.Key + ";BlobEndpoint=" + s.URL + ";"
	out, err := exec.CommandContext(t.Context(), built(t, name), "-connection", connection).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	return string(out)
}

// The example starts two processes in real time, and kills the process that holds the lease.
func TestExampleTakeover(t *testing.T) {
	t.Parallel()
	out := example(t, "takeover")
	tokens := regexp.MustCompile(`token +(\d{20})`).FindAllStringSubmatch(out, -1)
	if len(tokens) != 2 || lease.Token(tokens[1][1]).Compare(lease.Token(tokens[0][1])) <= 0 {
		t.Errorf("its tokens are %v", tokens)
	}
}

func TestExampleFence(t *testing.T) {
	t.Parallel()
	if out := example(t, "fence"); !strings.Contains(out, "its write is refused by the service") {
		t.Errorf("it says %s", out)
	}
}

// Without a service, an example program says which program to start. The client of the service
// tries to connect for 10 s.
func TestExamplesSayWhatToStart(t *testing.T) {
	for _, name := range []string{"takeover", "fence"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const nowhere = "AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:1/a;"
			out, err := exec.CommandContext(t.Context(), built(t, name), "-connection", nowhere).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "go run ./cmd/blobtest in the folder blobtest, or give -connection") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
