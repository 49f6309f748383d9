package azuretest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/processes"
)

// fast is the rate of the server's clock, compared with real time. At this rate, the shortest lease
// of the service, which lasts 15 seconds, lasts one second for the processes.
const fast = 15

// asServer is an environment variable. If it is set, the process runs as a server. The value is the
// address to listen on.
const asServer = "AZURETEST_SERVER"

func TestMain(m *testing.M) {
	if address := os.Getenv(asServer); address != "" {
		if err := serve(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if processes.Hold(func(endpoint string) (processes.Store, error) {
		s, err := openFast(endpoint)
		return slowedStore{s}, err
	}) {
		return
	}
	os.Exit(m.Run())
}

// serve is the main function of a server process.
func serve(address string) error {
	h, err := blobtest.NewHandler(nil, &blobtest.Options{Clock: blobtest.NewFastClock(time.Now(), fast), Containers: []string{box}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := h.HTTPServer()
	ctx := processes.Ready()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	return h.Serve(s, l)
}

// openFast opens the container at an address for a process that runs in real time.
func openFast(address string) (slowed, error) {
	cred, err := container.NewSharedKeyCredential(blobtest.DefaultAccount, blobtest.DefaultKey)
	if err != nil {
		return slowed{}, err
	}
	c, err := container.NewClientWithSharedKeyCredential("http://"+address+"/"+blobtest.DefaultAccount+"/"+box, cred,
		&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}}})
	if err != nil {
		return slowed{}, err
	}
	leases, err := azlease.New(c, nil)
	return slowed{leases}, err
}

// A slowed authority converts the times of the fast clock to real time.
type slowed struct{ leases *azlease.Container }

func (s slowed) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Duration != lease.Infinite {
		req.Duration *= fast
	}
	if p, given := req.Period.Get(); given {
		req.Period = lease.Grace(p * fast)
	}
	res, err := s.leases.Do(ctx, name, req)
	if res.MinRemaining != lease.Infinite {
		res.MinRemaining /= fast
	}
	if res.Record.Duration != lease.Infinite {
		res.Record.Duration /= fast
	}
	if u := res.Record.Until; !u.IsZero() {
		res.Record.Until = res.Now.Add(u.Sub(res.Now) / fast)
	}
	return res, err
}

// A slowedStore is the store of a process that holds a lease.
type slowedStore struct{ slowed }

func (s slowedStore) Authority() lease.Authority { return s.slowed }

// A proxy is the network between processes and a server. Its connections can be cut.
type proxy struct {
	net.Listener

	mu    sync.Mutex
	to    string // where new connections go
	open  map[net.Conn]bool
	serve sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, open: map[net.Conn]bool{}}
	p.serve.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve.Go(func() { p.connect(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.serve.Wait()
	})
	return p
}

func (p *proxy) connect(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.open[client], p.open[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

// move leads new connections to another server.
func (p *proxy) move(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

// SPEC G1, G2, H9: the server is paused and resumed, and connections are cut, while three processes
// that hold a lease in turns are paused, resumed and killed. No stale write passes the guard, and
// no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	server, err := processes.Start(asServer + "=" + address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	p := newProxy(t, address)
	through := p.Addr().String()
	name := strings.ReplaceAll(t.Name(), "/", "-")
	processes.Prove(t, processes.Options{Name: name, Endpoints: []string{through, through, address}, Duration: time.Second}, rounds, func(r *rand.Rand) string {
		if r.IntN(2) == 0 {
			p.cut()
			return "connections cut"
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(time.Second)))) // a real process
		if err := server.Continue(); err != nil {
			t.Error(err)
		}
		return "server stopped and continued"
	})
}
