package azuretest

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/enginetest"
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

// connection returns the connection string of a new server.
func connection(t *testing.T) string {
	s := server(t)
	return "AccountName=" + s.Account + ";AccountKey=" + s.Key + ";BlobEndpoint=" + s.URL + ";"
}

// The example starts two processes in real time, and kills the process that holds the lease.
func TestExampleTakeover(t *testing.T) {
	t.Parallel()
	enginetest.TakesOver(t, enginetest.Build(t, "..", "takeover"), "-connection", connection(t))
}

func TestExampleFence(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), enginetest.Build(t, "..", "fence"), "-connection", connection(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its write is refused by the service") {
		t.Errorf("%v: %s", err, out)
	}
}

// Without a service, an example program says which program to start. The client of the service
// tries to connect for 10 s.
func TestExamplesSayWhatToStart(t *testing.T) {
	for _, name := range []string{"takeover", "fence"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const nowhere = "AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:1/a;"
			out, err := exec.CommandContext(t.Context(), enginetest.Build(t, "..", name), "-connection", nowhere).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "go run ./cmd/blobtest in the folder blobtest, or give -connection") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
