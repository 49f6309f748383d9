package natstest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/natslease"
)

var (
	idA, idB                = shorthand.IDA, shorthand.IDB
	acquire, renew, release = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do, eventually          = shorthand.Do, shorthand.Eventually
	says, permanent         = shorthand.Says, shorthand.Permanent
)

// shared is the server of all tests that do not harm their server. It has a bucket.
var shared *member

func TestMain(m *testing.M) {
	if enginetest.ServeChild(func(m *member) (stop func(), err error) { return m.stop, m.start() }) {
		return
	}
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		if shared, err = newMember(dir); err != nil {
			return nil, err
		}
		if err := shared.start(); err != nil {
			return nil, err
		}
		return func() { shared.stop() }, makeBucket(shared.url(), 1)
	})
}

// A member is a single server or a part of a cluster.
type member struct {
	clustertest.Member
	Routes []string // addresses of all other members; none for a single server
	Users  []*server.User
	Sync   bool // sync_interval: always

	server *server.Server
}

// newMember prepares a single server.
func newMember(dir string) (*member, error) {
	members, err := clustertest.NewMembers(dir, 1)
	if err != nil {
		return nil, err
	}
	return &member{Member: members[0]}, nil
}

func (m *member) url() string { return "nats://" + m.Client }

func port(address string) int {
	_, text, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(text)
	return n
}

// start starts the member, also again with the data that it has stored, and returns when clients can connect.
func (m *member) start() error {
	o := &server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: port(m.Client), JetStream: true, StoreDir: m.Dir,
		NoLog: true, NoSigs: true, Users: m.Users, SyncAlways: m.Sync,
	}
	if len(m.Routes) > 0 {
		nowhere, err := enginetest.FreeAddress() // members use only their routes, which can be cut
		if err != nil {
			return err
		}
		o.Cluster = server.ClusterOpts{Name: "natstest", Host: "127.0.0.1", Port: port(m.Peer), NoAdvertise: true, Advertise: nowhere, PoolSize: -1}
		for _, address := range m.Routes {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: address})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	failed := make(fatal, 1)
	s.SetLoggerV2(failed, false, false, false)
	go s.Start() // ends with stop
	for range 300 {
		if s.ReadyForConnections(100 * time.Millisecond) {
			m.server = s
			return nil
		}
		select {
		case err = <-failed:
			s.Shutdown()
			return fmt.Errorf("NATS at %s: %w", m.Client, err)
		default:
		}
	}
	s.Shutdown()
	return fmt.Errorf("NATS at %s is not ready after 30s", m.Client)
}

// fatal is a logger that keeps the first error after which a server does not start, and nothing else.
type fatal chan error

func (f fatal) Fatalf(format string, v ...any) {
	select {
	case f <- fmt.Errorf(format, v...):
	default:
	}
}

func (fatal) Noticef(string, ...any) {}
func (fatal) Warnf(string, ...any)   {}
func (fatal) Errorf(string, ...any)  {}
func (fatal) Debugf(string, ...any)  {}
func (fatal) Tracef(string, ...any)  {}

// stop ends the member. If it is a leader, it first steps down.
func (m *member) stop() {
	m.server.Shutdown()
	m.server.WaitForShutdown()
}

// makeBucket makes the bucket of the leases.
func makeBucket(endpoint string, replicas int) error {
	js, err := connect(endpoint)
	if err != nil {
		return err
	}
	defer js.Conn().Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := js.CreateOrUpdateKeyValue(attempt, natslease.BucketConfig(natslease.DefaultBucket, replicas))
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond) // a real engine: a cluster has to elect its leader first
	}
}

// A child is a server in a process of its own, which a test can pause and kill. It ends with the test.
type child struct {
	*member
	*enginetest.Child
}

// newChild starts a child with a bucket.
func newChild(t testing.TB, change ...func(*member)) *child {
	t.Helper()
	m, err := newMember(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(m)
	}
	c := &child{m, enginetest.StartChild(t, m.Client, m)}
	if err := makeBucket(c.url(), 1); err != nil {
		t.Fatal(err)
	}
	return c
}

// client makes a client that is closed at the end of the test.
func client(t testing.TB, endpoint string, o ...nats.Option) jetstream.JetStream {
	t.Helper()
	js, err := connect(endpoint, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(js.Conn().Close)
	return js
}

func connect(endpoint string, o ...nats.Option) (jetstream.JetStream, error) {
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	nc, err := nats.Connect(endpoint, append(append(natslease.ConnectOptions(), quiet, nats.RetryOnFailedConnect(true)), o...)...)
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

func store(t testing.TB, js jetstream.JetStream, o *natslease.Options) *natslease.Store {
	t.Helper()
	var s *natslease.Store
	eventually(t, "a store", func(ctx context.Context) (err error) {
		s, err = natslease.New(ctx, js, o)
		return err
	})
	return s
}
