package redislease_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// shared is the server of all tests that do not harm their server.
var shared *redisserver.Server

func TestMain(m *testing.M) {
	if processes.Hold(openStore) {
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "redislease")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if shared, err = redisserver.New(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.Stop()
		return m.Run()
	}())
}

// ownServer starts a server for a test that harms the server.
func ownServer(t testing.TB, settings ...string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.New(t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// client makes a client of a server. The client is closed at the end of the test.
func client(t testing.TB, addr string, configure ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: addr}
	for _, f := range configure {
		f(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// store makes a Store that is closed at the end of the test.
func store(t testing.TB, c redis.UniversalClient, o *redislease.Options) *redislease.Store {
	t.Helper()
	s, err := redislease.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// prefix returns a prefix that no other test has.
func prefix(t testing.TB) string { return "t:" + t.Name() }
