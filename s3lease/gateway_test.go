package s3lease

import (
	"flag"
	"net"
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

// A gateway is a real S3 server, VersityGW, which keeps objects in files. A test can pause, resume and kill it.
type gateway struct {
	*enginetest.Process
	addr, dir string
}

func newGateway(t testing.TB) *gateway {
	t.Helper()
	g := &gateway{dir: t.TempDir()}
	var err error
	if g.addr, err = enginetest.FreeAddress(); err == nil {
		err = os.Mkdir(filepath.Join(g.dir, "bucket"), 0o755)
	}
	if err == nil {
		err = g.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Kill() })
	return g
}

func (g *gateway) Addr() string { return g.addr }

// Start starts the gateway for the first time or again, and returns when it accepts connections.
func (g *gateway) Start() error {
	program, err := exec.Command("go", "-C", "../internal/check/engines", "tool", "-n", "versitygw").Output() // builds it if necessary
	if err != nil {
		return err
	}
	cmd := exec.Command(strings.TrimSpace(string(program)), "--port", g.addr, "--keep-alive", "--quiet", "posix", g.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=user", "ROOT_SECRET_ACCESS_KEY=password")
	if g.Process, err = enginetest.StartCommand(cmd); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // a real engine
		c, err := net.Dial("tcp", g.addr)
		if err == nil {
			return c.Close()
		}
		if time.Since(began) > time.Minute {
			return err
		}
	}
}

func TestConformanceOfAGateway(t *testing.T) {
	t.Parallel()
	conform(t, "http://"+newGateway(t).addr, 500*time.Millisecond)
}

func TestHistoriesOfAGateway(t *testing.T) {
	t.Parallel()
	histories(t, enginetest.At("http://"+newGateway(t).addr, 4), linearize.TestOptions{Runs: 400, Workload: linearize.Workload{Term: 30 * time.Millisecond}})
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
	return enginetest.UnderFaults(t, newGateway(t), func(addr string) string { return "http://" + addr })
}
