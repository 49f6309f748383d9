package etcdtest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fencedlease/lease/etcdlease"
)

// serveInMemory starts a server without a network until the end of the test, and returns a dialer to it.
func serveInMemory(t *testing.T, register func(*grpc.Server)) grpc.DialOption {
	l, s := bufconn.Listen(1<<16), grpc.NewServer()
	register(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })
}

// A mute is a server that answers no request while it is silent.
type mute struct {
	etcdserverpb.UnimplementedKVServer

	silent atomic.Bool
}

// Range answers that there is no key.
func (m *mute) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if m.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &etcdserverpb.RangeResponse{Header: new(etcdserverpb.ResponseHeader)}, nil
}

// muteStore opens a store at a mute server. The last result is what the store has logged.
func muteStore(t *testing.T) (*etcdlease.Store, *mute, *logged) {
	server, said := new(mute), new(logged)
	c := client(t, "http://mute", serveInMemory(t, func(s *grpc.Server) { etcdserverpb.RegisterKVServer(s, server) }))
	return store(t, c, &etcdlease.Options{SilenceWarning: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(said, nil))}), server, said
}

// warns requires that the store has logged the wanted number of warnings.
func (l *logged) warns(t *testing.T, when string, want int) {
	t.Helper()
	synctest.Wait()
	if text := l.String(); strings.Count(text, "etcd does not answer") != want {
		t.Errorf("%s: the store said %q, want %d warnings", when, text, want)
	}
}

// A store warns once for each silence, which begins with the first request that gets no answer, or with
// an answer while other requests are still under way.
func TestOneWarningForEachSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server, said := muteStore(t)
		list := func(ctx context.Context) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return nil
		}
		shortly := func() { // sends a request and gives it up after a second
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := list(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		for silence := range 2 {
			server.silent.Store(true)
			shortly()
			time.Sleep(5 * time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			go list(ctx)
			time.Sleep(4*time.Second - 1)
			said.warns(t, "before 10 s", silence)
			time.Sleep(time.Nanosecond)
			said.warns(t, "10 s after the first request", silence+1)
			if text := said.String(); !strings.Contains(text, "for=10s") || !strings.Contains(text, "http://mute") {
				t.Errorf("the store said %q", text)
			}
			for range 30 {
				shortly()
			}
			said.warns(t, "in the same silence", silence+1)
			cancel()
			server.silent.Store(false)
			if err := list(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			said.warns(t, "without a request", silence+1)
		}

		server.silent.Store(true)
		go list(t.Context())
		synctest.Wait()
		server.silent.Store(false)
		for range 6 { // meanwhile etcd answers other requests
			time.Sleep(5 * time.Second)
			if err := list(t.Context()); err != nil {
				t.Error(err)
			}
		}
		said.warns(t, "while others are answered", 2)
		time.Sleep(10*time.Second - 1)
		said.warns(t, "before 10 s since the last answer", 2)
		time.Sleep(time.Nanosecond)
		said.warns(t, "10 s since the last answer", 3)
	})
}

// A request that its caller cancels is no sign that etcd is silent.
func TestNoWarningAfterACanceledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server, said := muteStore(t)
		server.silent.Store(true)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := s.Load(ctx, t.Name()); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		said.warns(t, "after short requests", 0)
	})
}
