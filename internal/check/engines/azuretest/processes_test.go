package azuretest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// fast is the rate of the server's clock, compared with real time. At this rate, the shortest lease of
// the service, 15 seconds, lasts one second for the processes.
const fast = 15

func TestMain(m *testing.M) {
	if enginetest.ServeChild(serve) {
		return
	}
	enginetest.Main(m, func(endpoint string) (lease.Authority, error) { return openFast(endpoint) }, nil)
}

// serve starts the server of a child.
func serve(address string) (stop func(), err error) {
	h, err := blobtest.NewHandler(nil, &blobtest.Options{Clock: leasefault.NewClockAt(time.Now(), fast), Containers: []string{box}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := h.HTTPServer()
	go func() { _ = h.Serve(s, l) }()
	return func() { _ = s.Close() }, nil
}

// openFast opens the container at an address for a process that runs in real time.
func openFast(address string) (slowed, error) {
	c, err := newClient("http://"+address+"/"+blobtest.DefaultAccount+"/"+box, blobtest.DefaultKey, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}})
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

// SPEC G1, G2, H9: the server is paused and resumed, and connections are cut, while three processes
// that hold a lease in turns are paused, resumed and killed. No stale write passes the guard, and no
// holder believes that it holds the lease while another has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	address, err := enginetest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	server := enginetest.StartChild(t, address, address)
	target := enginetest.UnderFaults(t, memoryServer{server}, nil)
	enginetest.TestHolders(t, target, &enginetest.HolderOptions{Name: strings.ReplaceAll(t.Name(), "/", "-")})
}

// A memoryServer keeps its data in memory, so it is only paused for longer instead of killed.
type memoryServer struct{ *enginetest.Child }

func (memoryServer) Kill() {}

func (s memoryServer) Start() error { return s.Pause(time.Second) }
