package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

var (
	idA, idB             = shorthand.IDA, shorthand.IDB
	acquire, renew       = shorthand.Acquire, shorthand.Renew
	do, says, eventually = shorthand.Do, shorthand.Says, shorthand.Eventually
)

// shared is the server of all tests that do not harm their server.
var shared *member

func TestMain(m *testing.M) {
	if enginetest.ServeChild(func(m *member) (stop func(), err error) { return m.stop, m.start() }) {
		return
	}
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		members, err := newMembers(dir, 1)
		if err != nil {
			return nil, err
		}
		shared = members[0]
		return func() { shared.stop() }, shared.start()
	})
}

// A member is a member of a cluster of etcd, and runs in this process.
type member struct {
	clustertest.Member
	Cluster string
	Fsync   bool
	Joins   bool // an existing cluster

	etcd *embed.Etcd
}

// newMembers prepares a cluster.
func newMembers(dir string, n int) (members []*member, err error) {
	prepared, err := clustertest.NewMembers(dir, n)
	var peers []string
	for _, p := range prepared {
		peers = append(peers, p.Name+"=http://"+p.Peer)
	}
	for _, p := range prepared {
		members = append(members, &member{Member: p, Cluster: strings.Join(peers, ",")})
	}
	return members, err
}

// start starts the member, also again with the data that it has stored, and returns when it is ready.
func (m *member) start() error {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = m.Name, m.Dir, "panic", !m.Fsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	client, peer := []url.URL{{Scheme: "http", Host: m.Client}}, []url.URL{{Scheme: "http", Host: m.Peer}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.InitialCluster = m.Cluster
	if m.Joins {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	cfg.TickMs, cfg.ElectionMs = 20, 200
	etcd, err := embed.StartEtcd(cfg)
	for until := time.Now().Add(10 * time.Second); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond) // a connection may still use the port
		etcd, err = embed.StartEtcd(cfg)
	}
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		m.etcd = etcd
		return nil
	case <-time.After(30 * time.Second):
		etcd.Close()
		return errors.New("etcd is not ready after 30s")
	}
}

func (m *member) stop() { m.etcd.Close() }

// crash ends a member at once, like a crash.
func (m *member) crash() {
	m.etcd.Server.HardStop()
	m.etcd.Close()
}

// A child is a member in a process of its own, which a test can pause and kill. It ends with the test.
type child struct {
	*member
	*enginetest.Child
}

func newChild(t testing.TB, change ...func(*member)) *child {
	t.Helper()
	members, err := newMembers(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m := members[0]
	for _, f := range change {
		f(m)
	}
	return &child{m, enginetest.StartChild(t, m.Client, m)}
}

// client makes a client that is closed at the end of the test.
func client(t testing.TB, endpoint string, o ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	config := etcdlease.ClientConfig(endpoint)
	config.Logger, config.DialOptions = zap.NewNop(), append(config.DialOptions, o...)
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func store(t testing.TB, c *clientv3.Client, o *etcdlease.Options) *etcdlease.Store {
	t.Helper()
	s, err := etcdlease.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A meter counts the exchanges of a client.
type meter struct{ n atomic.Int64 }

func (m *meter) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		m.n.Add(1)
		return invoke(ctx, method, req, reply, cc, o...)
	})
}

func (m *meter) count() int { return int(m.n.Load()) }
