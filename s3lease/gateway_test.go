package s3lease

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// service is the URL of a bucket. With it, TestConformance and TestHistories run there instead of at the double.
var service = flag.String("s3.url", "", "test the service of this bucket, such as s3://BUCKET/PREFIX?region=REGION")

// newGateway starts a real S3 server, VersityGW, which keeps objects in files, until the end of the test.
func newGateway(t testing.TB) *enginetest.Program {
	t.Helper()
	dir := t.TempDir()
	program, err := exec.Command("go", "-C", "../internal/check/engines", "tool", "-n", "versitygw").Output() // builds it if necessary
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "files", "bucket"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := enginetest.StartProgram(dir, func(addr, _ string) *exec.Cmd {
		cmd := exec.Command(strings.TrimSpace(string(program)), "--port", addr, "--keep-alive", "--quiet", "posix", filepath.Join(dir, "files"))
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=user", "ROOT_SECRET_ACCESS_KEY=password")
		return cmd
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Kill() })
	return g
}

func TestConformanceOfAGateway(t *testing.T) {
	t.Parallel()
	conform(t, at(newGateway(t).Addr()), 500*time.Millisecond)
}

func TestHistoriesOfAGateway(t *testing.T) {
	t.Parallel()
	histories(t, enginetest.At(at(newGateway(t).Addr()), 4), linearize.TestOptions{Runs: 400, Workload: linearize.Workload{Term: 30 * time.Millisecond}})
}

// The same holds while the gateway is paused and resumed, killed and started again, and while its connections fail.
func TestHistoriesOfAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	histories(t, underFaults(t), linearize.TestOptions{Runs: 400})
}

// SPEC G1, G2, H9: the same faults, while holders are paused, resumed and killed.
func TestHoldersAtAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, underFaults(t), nil)
}

func underFaults(t testing.TB) enginetest.Target {
	return enginetest.UnderFaults(t, newGateway(t), at)
}
