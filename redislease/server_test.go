package redislease_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

var (
	idA, idB                = shorthand.IDA, shorthand.IDB
	acquire, renew, release = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do, eventually, within  = shorthand.Do, shorthand.Eventually, shorthand.Within
	ownServer               = redisserver.NewFor
)

func change(from, to lease.ID) lease.Request {
	return lease.Request{Action: lease.ActionChange, ID: from, Proposed: to}
}

// shared is the server of all tests that do not harm their server.
var shared *redisserver.Server

func TestMain(m *testing.M) {
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		if shared, err = redisserver.New(dir); err != nil {
			return nil, err
		}
		return func() { shared.Kill() }, nil
	})
}

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

// A hook is called for all commands that a client sends, and calls the last parameter to send them.
type hook func(ctx context.Context, all []redis.Cmder, next redis.ProcessPipelineHook) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		return h(ctx, []redis.Cmder{c}, func(ctx context.Context, all []redis.Cmder) error { return next(ctx, all[0]) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error { return h(ctx, all, next) }
}

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

func proxy(t testing.TB, target string) *enginetest.Proxy { return enginetest.NewProxy(t, target, nil) }

// A pair is a primary and a replica, with one proxy for the clients and one for the replica.
type pair struct {
	primary, replica *redisserver.Server
	front, link      *enginetest.Proxy
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{primary: ownServer(t)}
	p.front, p.link = proxy(t, p.primary.Addr()), proxy(t, p.primary.Addr())
	p.replica = newReplica(t, p.primary, p.link.Addr())
	return p
}

// newReplica starts a replica of a server at an address. It returns when the replica has all data
// and the primary counts the replica.
func newReplica(t testing.TB, primary *redisserver.Server, addr string) *redisserver.Server {
	t.Helper()
	s := ownServer(t, "--replicaof", strings.Replace(addr, ":", " ", 1))
	s.Await(t, "master_link_status:up", "info", "replication")
	primary.Await(t, "state=online", "info", "replication")
	return s
}

// failOver promotes the replica, after the primary was killed or cut off, and connects the clients to it.
func (p *pair) failOver(t testing.TB) {
	t.Helper()
	p.replica.Must(t, "replicaof", "no", "one")
	p.front.Target(p.replica.Addr())
	p.front.Cut()
}

func watch(t testing.TB, w lease.Watcher, name string) <-chan struct{} {
	t.Helper()
	signals, err := w.Watch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return signals
}

func load(t testing.TB, s lease.Store, name string) lease.Snapshot {
	t.Helper()
	snap, err := s.Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}
