package redislease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// The server of a cluster gets a new address again and again. The Store forgets the old addresses, but not the
// address at which a request is still under way.
func TestOldAddressesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var addr atomic.Value
		answer := make(chan struct{})
		c := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{End: buckets - 1, Nodes: []redis.ClusterNode{{Addr: addr.Load().(string)}}}}, nil
			},
			Dialer: func(_ context.Context, _, to string) (net.Conn, error) {
				if to == "frozen:1" {
					<-answer
				}
				return nil, errors.New("there is no server")
			},
			DialerRetries: 1, PoolTimeout: 1000 * time.Hour, // longer than the test
		})
		defer c.Close()
		s, err := New(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		defer close(answer)
		load := func(at string) {
			addr.Store(at)
			s.servers.failOver(t.Context(), nil, false) // reads the address
			synctest.Wait()
			go s.Load(context.Background(), "x")
			time.Sleep(forgetAfter + time.Second)
			synctest.Wait()
		}
		load("frozen:1")
		for i := range 10 {
			load(fmt.Sprint("node:", i))
		}
		if s.lines["frozen:1"] == nil || len(s.lines) != 2 {
			t.Errorf("%d addresses are known, want 2: that of the last server, and that of the frozen server (%v)", len(s.lines), s.lines["frozen:1"] != nil)
		}
	})
}
