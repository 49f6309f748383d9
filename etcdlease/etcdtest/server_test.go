package etcdtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
)

// asServer is an environment variable. If it has a member as JSON, the test binary runs as that server.
const asServer = "ETCDTEST_MEMBER"

var (
	idA, idB                = enginetest.IDA, enginetest.IDB
	acquire, renew, release = enginetest.Acquire, enginetest.Renew, enginetest.Release
	do, eventually          = enginetest.Do, enginetest.Eventually
	says                    = enginetest.Says
)

// shared is the server of all tests that do not harm their server.
var shared *member

func TestMain(m *testing.M) {
	if text := os.Getenv(asServer); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if processes.Hold(openStore) {
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "etcdtest")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		members, err := newMembers(dir, 1)
		if err == nil {
			shared = members[0]
			err = shared.start()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.stop()
		return m.Run()
	}())
}

// openStore makes the store of a holder that runs in a separate process.
func openStore(endpoint string) (processes.Store, error) {
	c, err := newClient(endpoint)
	if err != nil {
		return nil, err
	}
	return etcdlease.New(c, nil)
}

// A member is a member of a cluster of etcd, and runs in this process.
type member struct {
	Name, Dir, Client, Peer, Cluster string
	Fsync                            bool
	Joins                            bool // an existing cluster

	etcd *embed.Etcd
}

// newMembers prepares a cluster on free ports of the loopback interface.
func newMembers(dir string, n int) ([]*member, error) {
	members := make([]*member, n)
	cluster := ""
	for i := range members {
		m := &member{Name: fmt.Sprint("n", i), Dir: filepath.Join(dir, fmt.Sprint("n", i))}
		for _, address := range []*string{&m.Client, &m.Peer} {
			free, err := processes.FreeAddress()
			if err != nil {
				return nil, err
			}
			*address = "http://" + free
		}
		if cluster != "" {
			cluster += ","
		}
		cluster += m.Name + "=" + m.Peer
		members[i] = m
	}
	for _, m := range members {
		m.Cluster = cluster
	}
	return members, nil
}

// start starts the member, also again with the data that it has stored, and returns when it is ready.
func (m *member) start() error {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = m.Name, m.Dir, "panic", !m.Fsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	client, _ := url.Parse(m.Client)
	peer, _ := url.Parse(m.Peer)
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
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

// serve is the main function of a child. It runs a member until the tests no longer need it.
func serve(text string) error {
	m := new(member)
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return err
	}
	if err := m.start(); err != nil {
		return err
	}
	defer m.stop()
	<-processes.Ready().Done()
	return nil
}

// A child is a member in a process of its own, which a test can pause, resume and kill. It ends with
// the tests.
type child struct {
	*member
	*processes.Process
}

func newChild(t *testing.T) *child {
	t.Helper()
	members, err := newMembers(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{member: members[0]}
	c.start(t)
	t.Cleanup(func() { c.Kill() })
	return c
}

// start starts the child for the first time or again, and returns when it is ready.
func (c *child) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(c.member)
	if err != nil {
		t.Fatal(err)
	}
	if c.Process, err = processes.Start(asServer + "=" + string(text)); err != nil {
		t.Fatal(err)
	}
}

// client makes a client that is closed at the end of the test.
func client(t testing.TB, endpoint string, o ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	c, err := newClient(endpoint, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newClient(endpoint string, o ...grpc.DialOption) (*clientv3.Client, error) {
	config := etcdlease.ClientConfig(endpoint)
	config.Logger, config.DialOptions = zap.NewNop(), append(config.DialOptions, o...)
	return clientv3.New(config)
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

// count returns the number of exchanges of f.
func (m *meter) count(f func()) int {
	before := m.n.Load()
	f()
	return int(m.n.Load() - before)
}
