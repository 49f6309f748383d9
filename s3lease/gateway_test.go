package s3lease

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// service is the URL of a bucket. With it, TestConformance and TestHistories run there instead of at the double.
var service = flag.String("s3.url", "", "test the service of this bucket, such as s3://BUCKET/PREFIX?region=REGION")

// A gateway is a real S3 server, VersityGW, which keeps objects in files. A test can pause, resume and kill it.
type gateway struct {
	*processes.Process
	addr, dir string
}

func newGateway(t testing.TB) *gateway {
	t.Helper()
	g := &gateway{dir: t.TempDir()}
	var err error
	if g.addr, err = processes.FreeAddress(); err == nil {
		err = os.Mkdir(filepath.Join(g.dir, "bucket"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.start(t)
	t.Cleanup(func() { g.Kill() })
	return g
}

// start starts the gateway for the first time or again, and returns when it accepts connections.
func (g *gateway) start(t testing.TB) {
	t.Helper()
	program, err := exec.Command("go", "-C", "gateway", "tool", "-n", "versitygw").Output() // builds it if necessary
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strings.TrimSpace(string(program)), "--port", g.addr, "--keep-alive", "--quiet", "posix", g.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=user", "ROOT_SECRET_ACCESS_KEY=password")
	if g.Process, err = processes.Run(cmd); err != nil {
		t.Fatal(err)
	}
	enginetest.Eventually(t, "a gateway", func(context.Context) error {
		c, err := net.Dial("tcp", g.addr)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// harm injects a random fault into the gateway, and returns its name.
func (g *gateway) harm(t testing.TB, p *enginetest.Proxy) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		switch r.IntN(4) {
		case 0:
			if err := g.Pause(time.Duration(100+r.IntN(400)) * time.Millisecond); err != nil {
				t.Error(err)
			}
			return "stop and continue"
		case 1:
			g.Kill()
			g.start(t)
			return "kill and restart"
		case 2:
			p.Silence()
			time.Sleep(time.Duration(100+r.IntN(400)) * time.Millisecond) // a real engine
			p.Cut()
			return "silently dead connections"
		}
		p.Cut()
		return "cut connections"
	}
}

func TestConformanceOfAGateway(t *testing.T) {
	t.Parallel()
	conform(t, "http://"+newGateway(t).addr, 500*time.Millisecond)
}

func TestHistoriesOfAGateway(t *testing.T) {
	t.Parallel()
	histories(t, "http://"+newGateway(t).addr, 400, linearize.Workload{Term: 30 * time.Millisecond, Timeout: time.Minute}, nil)
}

// The same holds while the gateway is paused and resumed, killed and started again, and while connections are cut or
// die silently.
func TestHistoriesOfAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	p := enginetest.NewProxy(t, g.addr, nil)
	histories(t, "http://"+p.Addr(), 400, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, g.harm(t, p))
}

// SPEC G1, G2, H9: the same faults, while holders are paused, resumed and killed.
func TestHoldersAtAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	p := enginetest.NewProxy(t, g.addr, nil)
	hold(t, []string{"http://" + p.Addr(), "http://" + p.Addr(), "http://" + g.addr}, g.harm(t, p))
}
