package redislease_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/redisserver"
)

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
		s.Await(t, fmt.Sprint("slaves=1,sentinels=", n), "info", "sentinel")
		s.Await(t, "OK", "sentinel", "ckquorum", "leases")
	}
	return all
}
