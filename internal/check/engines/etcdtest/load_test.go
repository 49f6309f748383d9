package etcdtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// One process holds 10,000 leases of 10 s at a server that syncs its disk, and loses none.
func TestTenThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 10_000, Hold: 30 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 200, Hold: 3 * time.Second}
	}
	server := newChild(t, func(m *member) { m.Fsync = true })
	l.Run(t, store(t, client(t, server.Client), nil))
}

// While etcd answers no read, a store has 48 of them under way, and still renews.
func TestRenewalsGoFirst(t *testing.T) {
	t.Parallel()
	const reads, underWay = 100, 48
	var hangs atomic.Bool
	var hung atomic.Int64
	end := make(chan struct{})
	s := store(t, client(t, shared.Client, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if hangs.Load() && strings.HasSuffix(method, "/Range") {
			hung.Add(1)
			<-end
		}
		return invoke(ctx, method, req, reply, cc, o...)
	})), nil)
	do(t, s.Authority(), t.Name(), acquire(idA, time.Minute), 0)
	hangs.Store(true)
	var all sync.WaitGroup
	for i := range reads {
		all.Go(func() {
			if i%2 == 0 {
				_, _ = s.Load(t.Context(), t.Name())
				return
			}
			for range s.List(t.Context(), t.Name()) {
			}
		})
	}
	eventually(t, "reads hang", func(context.Context) error {
		if n := hung.Load(); n != underWay {
			return fmt.Errorf("%d reads are under way, want %d", n, underWay)
		}
		return nil
	})
	do(t, s.Authority(), t.Name(), renew(idA), 0)
	if n := hung.Load(); n != underWay {
		t.Errorf("%d reads were under way, want %d", n, underWay)
	}
	close(end)
	all.Wait()
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	other := store(t, client(t, shared.Client), nil).Authority()
	enginetest.GraceWithAWatch(t, store(t, client(t, shared.Client), nil), other, t.Name())
}
