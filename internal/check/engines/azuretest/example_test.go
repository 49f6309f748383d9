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

// The service refuses a write of a holder that has lost its lease. Without a service, the example says which program to
// start. Its client then tries to connect for 10 s.
func TestExampleFence(t *testing.T) {
	t.Parallel()
	s, program := server(t), shorthand.Build(t, "../../../../azlease", "fence")
	for connection, want := range map[string]string{
		"AccountName=" + s.Account + ";AccountKey=" + s.Key + ";BlobEndpoint=" + s.URL + ";": "its write is refused by the service",
		"AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:1/a;":                   "go run ./blobtest/cmd/blobtest in the root of the repository, or give -connection",
	} {
		out, err := exec.CommandContext(t.Context(), program, "-connection", connection).CombinedOutput()
		if works := strings.Contains(connection, s.URL); (err == nil) != works || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s", err, out)
		}
	}
}
