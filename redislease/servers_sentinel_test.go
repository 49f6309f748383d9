package redislease_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
)

// newSentinel starts a sentinel, and returns when it knows the replica of the primary. failover makes a
// client that asks the sentinel.
func newSentinel(t testing.TB, primary *redisserver.Server) (sentinel *redisserver.Server, failover func() *redis.Client) {
	t.Helper()
	sentinel = newSentinels(t, primary, 1)[0]
	return sentinel, func() *redis.Client {
		return failoverClient(t, &redis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}})
	}
}

func failoverClient(t testing.TB, o *redis.FailoverOptions) *redis.Client {
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// newSentinels starts sentinels, and returns when each of them knows the replica of the primary and the others.
func newSentinels(t testing.TB, primary *redisserver.Server, n int) []*redisserver.Server {
	t.Helper()
	all := make([]*redisserver.Server, n)
	for i := range all {
		file := filepath.Join(t.TempDir(), "sentinel.conf") // the sentinel also writes to it
		text := fmt.Sprintf("sentinel monitor leases 127.0.0.1 %s %d\nsentinel down-after-milliseconds leases 500\nsentinel failover-timeout leases 5000\n", primary.Port(), n/2+1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all[i] = ownServer(t, file, "--sentinel")
	}
	for _, s := range all {
		eventually(t, "the sentinel knows all", func(ctx context.Context) error {
			if _, err := s.Do(ctx, "sentinel", "ckquorum", "leases"); err != nil {
				return err
			}
			for what, want := range map[string]int{"replicas": 1, "sentinels": n - 1} {
				found, err := s.Do(ctx, "sentinel", what, "leases")
				if got, _ := found.([]any); err != nil || len(got) != want {
					return fmt.Errorf("%d %s: %v", len(got), what, err)
				}
			}
			return nil
		})
	}
	return all
}

// Behind a sentinel, a Store finds the primary, and the new one after the primary has ended. Writes that
// a replica has acknowledged are not lost.
func TestSentinel(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	// The sentinel knows the replica by the address that the primary sees, so the replica must connect
	// to the primary without the proxy.
	p.replica.Must(t, "replicaof", "127.0.0.1", p.primary.Port())
	_, failover := newSentinel(t, p.primary)
	s := store(t, failover(), nil)
	a := s.Authority()
	held := do(t, a, "x", acquire(idA, time.Hour), 0)
	if n, err := p.primary.Do(t.Context(), "wait", 1, 10000); err != nil || n != int64(1) {
		t.Fatalf("the replica is behind: %v, %v", n, err)
	}
	awaitKey(t, p.replica, s.Key("x"))
	p.primary.Kill()
	eventually(t, "a renewal after the failover", func(ctx context.Context) error {
		res, err := a.Do(ctx, "x", renew(idA))
		if err == nil && res.Record.Epoch != held.Record.Epoch {
			t.Errorf("%v after the failover, and %v before", res.Record, held.Record)
		}
		return err
	})
	do(t, store(t, failover(), nil).Authority(), "x", acquire(idB, time.Minute), lease.ErrHeldByOther)
}
