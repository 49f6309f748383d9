//go:build linux

// This file is a complete example: a store over a server, and the tests of it. The server is a copy of the
// test binary that offers a store in memory over net/rpc.

package enginetest_test

import (
	"cmp"
	"context"
	"flag"
	"net"
	"net/rpc"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/memory"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests wait for processes, and use little of a processor
	if enginetest.ServeChild(serve) {
		return
	}
	enginetest.Main(m, func(addr string) (lease.Authority, error) { return (&store{addr: addr}).Authority(), nil }, nil)
}

// serve starts the server of a child.
func serve(addr string) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := rpc.NewServer()
	if err := s.RegisterName("Leases", &service{memory.New(nil)}); err != nil {
		return nil, err
	}
	go s.Accept(l)
	return func() { l.Close() }, nil
}

// start starts a server for one test.
func start(t testing.TB) enginetest.Server {
	t.Helper()
	addr, err := enginetest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return server{enginetest.StartChild(t, addr, addr)}
}

// A server keeps its data in memory, so instead of being killed and started again it is paused.
type server struct{ *enginetest.Child }

func (s server) Kill()        {}
func (s server) Start() error { return s.Pause(500 * time.Millisecond) }

// The store has the suites of a store whose clock is that of its server.
func TestConformance(t *testing.T) {
	s := start(t)
	open := func(testing.TB) enginetest.Store { return &store{addr: s.Addr()} }
	enginetest.Suites{
		Options: leasetest.Options{Unit: 100 * time.Millisecond, Slack: 100 * time.Millisecond, Can: leasetest.Everything &^ leasetest.CanServeOldVersions},
		Open:    open,
		Connect: func(_ testing.TB, transmit leasetest.Transmit) enginetest.Store {
			return &store{addr: s.Addr(), transmit: transmit}
		},
	}.Run(t, "Store")
}

// No two holders believe at the same time that they hold the lease. The tests at real servers have more rounds.
func TestHolders(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, enginetest.UnderFaults(t, start(t), nil), &enginetest.HolderOptions{Duration: 500 * time.Millisecond, Rounds: 8})
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, start(t).Addr(), nil)
	enginetest.RecoversAfterCuts(t, p, (&store{addr: p.Addr()}).Authority(), "x", time.Second)
}

// One process holds a few leases.
func TestLoad(t *testing.T) {
	t.Parallel()
	enginetest.Load{Leases: 20, Hold: time.Second, Duration: 3 * time.Second}.Run(t, memory.New(nil))
}

// A store sends its requests to a server, each over a connection of its own.
type store struct {
	addr     string
	transmit leasetest.Transmit // of a test; may be nil
}

func (s *store) Authority() lease.Authority { return lease.NewAuthority(s) }

func (s *store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.call(ctx, "Leases.Load", Args{Name: name})
}

func (s *store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.call(ctx, "Leases.Swap", Args{name, old, next})
}

func (s *store) call(ctx context.Context, method string, a Args) (snap lease.Snapshot, err error) {
	var r Reply
	send := func() error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		c := rpc.NewClient(conn)
		defer c.Close()
		return c.Call(method, a, &r)
	}
	if s.transmit != nil {
		err = s.transmit(ctx, send)
	} else {
		err = send()
	}
	switch {
	case err != nil:
		return lease.Snapshot{}, cmp.Or(context.Cause(ctx), err)
	case r.Code != 0:
		return lease.Snapshot{}, r.Code
	}
	return r.Snapshot, nil
}

// These are the types of the messages.
type (
	Args struct {
		Name string
		Old  lease.Snapshot
		Next lease.Record
	}
	Reply struct {
		Snapshot lease.Snapshot
		Code     lease.Code
	}
)

// A service carries out the requests at the server.
type service struct{ leases *memory.Store }

func (s *service) Load(a Args, r *Reply) (err error) {
	r.Snapshot, err = s.leases.Load(context.Background(), a.Name)
	return r.refuse(err)
}

func (s *service) Swap(a Args, r *Reply) (err error) {
	r.Snapshot, err = s.leases.Swap(context.Background(), a.Name, a.Old, a.Next)
	return r.refuse(err)
}

// refuse puts the Code of an error into the reply, because net/rpc passes on only the text of an error.
func (r *Reply) refuse(err error) error {
	if r.Code = lease.CodeOf(err); r.Code != 0 {
		return nil
	}
	return err
}
