package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/fencedlease/lease"
)

// If the context has ended, Watch fails with its error, and not with the Code in its cause.
func TestWatchUnderADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lease.ErrReleased)
	_, err := store(t, client(t, shared.Client), nil).Watch(ctx, t.Name())
	if !errors.Is(err, context.Canceled) || lease.CodeOf(err) != 0 {
		t.Errorf("%v, with the code %v", err, lease.CodeOf(err))
	}
}

// SPEC S7: under a context without a deadline, Watch fails after 5 s if etcd does not confirm the
// watch. All watches of a client share one stream. No matter how many fail, only this stream is left.
func TestWatchOfASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // The system accepts connections to l. Nothing is ever sent to them.
	silent := client(t, "http://"+l.Addr().String())
	var server unconfirming
	unconfirmed := client(t, "http://unconfirmed", serveInMemory(t, func(s *grpc.Server) { etcdserverpb.RegisterWatchServer(s, &server) }))
	clients := map[string]*clientv3.Client{"no word": silent, "no confirmation": unconfirmed}
	const each = 20
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(30*time.Second, cancel).Stop() // ends a Watch that has no time limit of its own
	var watches sync.WaitGroup
	for what, c := range clients {
		s := store(t, c, nil)
		for range each {
			watches.Go(func() {
				began := time.Now()
				_, err := s.Watch(ctx, t.Name())
				says(t, err, context.DeadlineExceeded, t.Name(), c.Endpoints()[0], "no answer in time")
				if took := time.Since(began); took < 5*time.Second || errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v after %v", what, err, took)
				}
			})
		}
	}
	watches.Wait()
	if streams := server.streams.Load(); streams != 1 {
		t.Errorf("%d streams", streams)
	}
	eventually(t, "goroutines of the failed watches end", func(context.Context) error {
		for part, most := range map[string]int{"etcdlease.": 0, "serveSubstream(": 0, "watchGRPCStream).run(": len(clients)} {
			if n := running(part); n > most {
				return fmt.Errorf("%d goroutines are in %s", n, part)
			}
		}
		return nil
	})
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the streams end with their clients", func(context.Context) error {
		if goroutines, streams := running("watchGRPCStream"), server.streams.Load(); goroutines > 0 || streams > 0 {
			return fmt.Errorf("%d goroutines and %d streams are left", goroutines, streams)
		}
		return nil
	})
}

// An unconfirming server accepts streams of watches, and never confirms a watch.
type unconfirming struct {
	etcdserverpb.UnimplementedWatchServer

	streams atomic.Int32 // number of open streams
}

func (u *unconfirming) Watch(stream etcdserverpb.Watch_WatchServer) error {
	u.streams.Add(1)
	defer u.streams.Add(-1)
	<-stream.Context().Done()
	return nil
}

// running returns the number of other goroutines that have the given function in their stack.
func running(function string) (n int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	_, others, _ := strings.Cut(string(stacks), "\n\n")
	for stack := range strings.SplitSeq(others, "\n\n") {
		if strings.Contains(stack, function) {
			n++
		}
	}
	return n
}
