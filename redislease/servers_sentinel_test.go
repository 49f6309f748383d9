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

// ownSentinel starts a sentinel with a file of settings. The sentinel also writes to this file.
func ownSentinel(t testing.TB, file string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.NewSentinel(t.TempDir(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Behind a sentinel, a Store finds the primary. After the primary has ended, the Store finds the
// new primary. The writes that a replica has acknowledged are not lost.
func TestSentinel(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor leases 127.0.0.1 %s 1\nsentinel down-after-milliseconds leases 500\nsentinel failover-timeout leases 5000\n", p.primary.Port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The sentinel knows the replica by the address that the primary sees, so the replica must connect
	// to the primary without the proxy.
	if _, err := p.replica.Do(t.Context(), "replicaof", "127.0.0.1", p.primary.Port()); err != nil {
		t.Fatal(err)
	}
	sentinel := ownSentinel(t, file)
	failover := func() *redis.Client {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}})
		t.Cleanup(func() { c.Close() })
		return c
	}
	s := store(t, failover(), nil)
	eventually(t, "the sentinel knows the replica", func(ctx context.Context) error {
		found, err := sentinel.Do(ctx, "sentinel", "replicas", "leases")
		if all, _ := found.([]any); err == nil && len(all) != 1 {
			err = errors.New("not yet")
		}
		return err
	})
	a := s.Authority()
	held := do(t, a, "x", acquire(idA, time.Hour), 0)
	if n, err := p.primary.Do(t.Context(), "wait", 1, 10000); err != nil || n != int64(1) {
		t.Fatalf("the replica is behind: %v, %v", n, err)
	}
	eventually(t, "the replica has the grant", func(ctx context.Context) error {
		n, err := p.replica.Do(ctx, "exists", s.Key("x"))
		if err == nil && n != int64(1) {
			err = errors.New("not yet")
		}
		return err
	})
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
