package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// newSentinel starts a sentinel, and returns when it knows the replica of the primary. failover makes a
// client that asks the sentinel.
func newSentinel(t testing.TB, primary *redisserver.Server) (sentinel *redisserver.Server, failover func() *redis.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf") // the sentinel also writes to it
	text := fmt.Sprintf("sentinel monitor leases 127.0.0.1 %s 1\nsentinel down-after-milliseconds leases 500\nsentinel failover-timeout leases 5000\n", primary.Port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel = ownServer(t, file, "--sentinel")
	eventually(t, "the sentinel knows the replica", func(ctx context.Context) error {
		_, err := sentinel.Do(ctx, "sentinel", "ckquorum", "leases")
		found, _ := sentinel.Do(ctx, "sentinel", "replicas", "leases")
		if all, _ := found.([]any); err == nil && len(all) != 1 {
			err = errors.New("not yet")
		}
		return err
	})
	return sentinel, func() *redis.Client {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}})
		t.Cleanup(func() { c.Close() })
		return c
	}
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
