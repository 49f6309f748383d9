package azuretest

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasefault"
)

func server(t *testing.T) *blobtest.Server {
	t.Helper()
	s, err := blobtest.NewServer(nil, &blobtest.Options{Clock: leasefault.NewClockAt(time.Now(), 1), Containers: []string{box}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestExampleFence(t *testing.T) {
	t.Parallel()
	s := server(t)
	connection := "AccountName=" + s.Account + ";AccountKey=" + s.Key + ";BlobEndpoint=" + s.URL + ";"
	out, err := exec.CommandContext(t.Context(), shorthand.Build(t, "../../../../azlease", "fence"), "-connection", connection).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its write is refused by the service") {
		t.Errorf("%v: %s", err, out)
	}
}

// Without a service, the example says which program to start. Its client tries to connect for 10 s.
func TestExampleSaysWhatToStart(t *testing.T) {
	t.Parallel()
	const nowhere = "AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:1/a;"
	out, err := exec.CommandContext(t.Context(), shorthand.Build(t, "../../../../azlease", "fence"), "-connection", nowhere).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "go run ./blobtest/cmd/blobtest in the root of the repository, or give -connection") {
		t.Errorf("%v: %s", err, out)
	}
}
