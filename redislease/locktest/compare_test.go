// Package locktest compares redislease with the locks of redsync and redislock in a failover. It is a
// separate module, so that redislease does not require redsync and redislock.
package locktest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// A lock takes a lock of one of the compared libraries.
type lock func(ctx context.Context) error

// kinds has a function for each library, which makes a lock over a client. Two locks of the same
// library contend.
var kinds = map[string]func(t testing.TB, c *redis.Client) lock{
	"redislease":                  func(t testing.TB, c *redis.Client) lock { return leased(t, c, 0) },
	"redislease with Replicas: 1": func(t testing.TB, c *redis.Client) lock { return leased(t, c, 1) },
	"redsync":                     redsyncLock,
	"redislock":                   redislockLock,
}

const duration = time.Minute

func leased(t testing.TB, c *redis.Client, replicas int) lock {
	s, err := redislease.New(c, &redislease.Options{Replicas: replicas, ReplicaTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	a, id := s.Authority(), lease.MustParseID(uuid.NewString())
	return func(ctx context.Context) error {
		_, err := a.Do(ctx, "compared", lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: duration})
		return err
	}
}

func redsyncLock(_ testing.TB, c *redis.Client) lock {
	return redsync.New(goredis.NewPool(c)).NewMutex("redsync", redsync.WithExpiry(duration), redsync.WithTries(1)).LockContext
}

func redislockLock(_ testing.TB, c *redis.Client) lock {
	return func(ctx context.Context) error {
		_, err := redislock.New(c).Obtain(ctx, "redislock", duration, nil)
		return err
	}
}

// replicate starts a replica behind a proxy, and returns when the replica has all data.
func replicate(t testing.TB, primary *redisserver.Server) (replica *redisserver.Server, link *enginetest.Proxy) {
	t.Helper()
	link = enginetest.NewProxy(t, primary.Addr(), nil)
	replica = redisserver.NewFor(t, "--replicaof", strings.Replace(link.Addr(), ":", " ", 1))
	for deadline := time.Now().Add(30 * time.Second); ; {
		info, err := replica.Do(t.Context(), "info", "replication")
		counted, _ := primary.Do(t.Context(), "info", "replication")
		if text, _ := info.(string); err == nil && strings.Contains(text, "master_link_status:up") && strings.Contains(fmt.Sprint(counted), "state=online") {
			return replica, link
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica is not connected: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // a real engine
	}
}

func client(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

// The test compares the libraries in a failover to a replica that did not get the last write. The
// first client takes the lock, the primary ends, and the second client asks the server that was
// promoted.
func TestFailover(t *testing.T) {
	for name, want := range map[string]struct {
		first  bool // the first client is told that it has the lock
		second bool // the second client is told that it has the lock
	}{
		"redislease":                  {true, true},
		"redislease with Replicas: 1": {false, false},
		"redsync":                     {true, true},
		"redislock":                   {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			primary := redisserver.NewFor(t)
			replica, link := replicate(t, primary)
			first, second := kinds[name](t, client(t, primary.Addr())), kinds[name](t, client(t, replica.Addr()))
			link.Isolate()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			one := first(ctx)
			primary.Kill()
			replica.Must(t, "replicaof", "no", "one")
			two := second(ctx)
			t.Logf("first: %v; second: %v", one, two)
			if got := one == nil; got != want.first {
				t.Errorf("the first has it: %v, want %v", got, want.first)
			}
			if got := one == nil && two == nil; got != want.second {
				t.Errorf("both have it: %v, want %v", got, want.second)
			}
		})
	}
}
