// Package locktest compares redislease with the locks of redsync and redislock in one run: the exchanges, the
// time, and the behavior in a failover. It is not in redislease, so that redislease does not require the two.
package locktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

var rounds = flag.Int("rounds", 300, "measurements of each")

// A lock is a lock of one of the compared libraries. The tests take, extend and release it.
type lock struct {
	take, extend, give func(ctx context.Context) error
}

// kinds makes a lock of each library over a client. Two locks of the same library contend.
var kinds = map[string]func(t testing.TB, c *redis.Client) lock{
	"redislease":                  func(t testing.TB, c *redis.Client) lock { return leased(t, c, 0) },
	"redislease with Replicas: 1": func(t testing.TB, c *redis.Client) lock { return leased(t, c, 1) },
	"redsync":                     redsyncLock,
	"redislock":                   redislockLock,
}

var errTaken = errors.New("another client has it")

const duration = time.Minute

func leased(t testing.TB, c *redis.Client, replicas int) lock {
	s, err := redislease.New(c, &redislease.Options{Replicas: replicas, ReplicaTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	a, id := s.Authority(), vectors.MustParseID(uuid.NewString())
	do := func(req lease.Request) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := a.Do(ctx, "compared", req)
			if lease.CodeOf(err) == lease.ErrHeldByOther {
				err = errTaken
			}
			return err
		}
	}
	return lock{
		do(lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: duration}),
		do(lease.Request{Action: lease.ActionRenew, ID: id}),
		do(lease.Request{Action: lease.ActionRelease, ID: id}),
	}
}

func redsyncLock(_ testing.TB, c *redis.Client) lock {
	m := redsync.New(goredis.NewPool(c)).NewMutex("redsync", redsync.WithExpiry(duration), redsync.WithTries(1))
	is := func(ok bool, err error) error {
		if err == nil && !ok {
			err = errTaken
		}
		return err
	}
	return lock{
		func(ctx context.Context) error {
			err := m.LockContext(ctx)
			if errors.As(err, new(*redsync.ErrTaken)) {
				err = errTaken
			}
			return err
		},
		func(ctx context.Context) error { return is(m.ExtendContext(ctx)) },
		func(ctx context.Context) error { return is(m.UnlockContext(ctx)) },
	}
}

func redislockLock(_ testing.TB, c *redis.Client) lock {
	locks := redislock.New(c)
	var held *redislock.Lock
	return lock{
		func(ctx context.Context) (err error) {
			if held, err = locks.Obtain(ctx, "redislock", duration, nil); errors.Is(err, redislock.ErrNotObtained) {
				err = errTaken
			}
			return err
		},
		func(ctx context.Context) error { return held.Refresh(ctx, duration, nil) },
		func(ctx context.Context) error { return held.Release(ctx) },
	}
}

// replicate starts a replica behind a proxy, and returns when the replica has all data.
func replicate(t testing.TB, primary *redisserver.Server) (replica *redisserver.Server, link *enginetest.Proxy) {
	t.Helper()
	link = enginetest.NewProxy(t, primary.Addr(), nil)
	replica = redisserver.NewFor(t, "--replicaof", strings.Replace(link.Addr(), ":", " ", 1))
	shorthand.Eventually(t, "the replica is connected", func(ctx context.Context) error {
		info, err := replica.Do(ctx, "info", "replication")
		counted, _ := primary.Do(ctx, "info", "replication")
		if !strings.Contains(fmt.Sprint(info), "master_link_status:up") || !strings.Contains(fmt.Sprint(counted), "state=online") {
			err = fmt.Errorf("%v, %v", info, err)
		}
		return err
	})
	return replica, link
}

// client makes a client that counts the exchanges of its connections.
func client(t testing.TB, addr string, sent *atomic.Int64) *redis.Client {
	o := &redis.Options{Addr: addr, MaxRetries: -1}
	dial := redis.NewDialer(&redis.Options{DialTimeout: 5 * time.Second})
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return counted{conn, sent}, nil
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// The libraries take turns at each step, so that the load of the machine is the same for all.
func TestCost(t *testing.T) {
	for what, settings := range map[string][]string{"in memory": nil, "appendfsync always": redisserver.Durable} {
		t.Run(what, func(t *testing.T) {
			primary := redisserver.NewFor(t, settings...)
			replicate(t, primary)
			type measured struct {
				lock
				sent  atomic.Int64
				took  [3][]time.Duration
				count [3]int64
			}
			var names []string
			all := map[string]*measured{}
			for name, make := range kinds {
				m := new(measured)
				m.lock = make(t, client(t, primary.Addr(), &m.sent))
				all[name] = m
				names = append(names, name)
			}
			slices.Sort(names)
			for round := range *rounds + 5 { // the first five rounds connect and load scripts
				for i := range names {
					m := all[names[(round+i)%len(names)]]
					for step, f := range []func(context.Context) error{m.take, m.extend, m.give} {
						before, began := m.sent.Load(), time.Now()
						if err := f(t.Context()); err != nil {
							t.Fatalf("%s: %v", names[(round+i)%len(names)], err)
						}
						if round >= 5 {
							m.took[step] = append(m.took[step], time.Since(began))
							m.count[step] += m.sent.Load() - before
						}
					}
				}
			}
			for _, name := range names {
				m := all[name]
				line := name + ":"
				for step, word := range []string{"take", "extend", "give back"} {
					slices.Sort(m.took[step])
					line += fmt.Sprintf(" %s %v in %.1f exchanges,", word, m.took[step][*rounds/2].Round(100*time.Nanosecond), float64(m.count[step])/float64(*rounds))
				}
				t.Log(strings.TrimSuffix(line, ","))
			}
		})
	}
}

// The failover is to a replica that did not get the last write: the first client takes the lock, the
// primary ends, and the second client asks the server that was promoted.
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
			var sent atomic.Int64
			first, second := kinds[name](t, client(t, primary.Addr(), &sent)), kinds[name](t, client(t, replica.Addr(), &sent))
			link.Isolate()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			one := first.take(ctx)
			if errors.Is(one, errTaken) {
				t.Errorf("the first is refused: %v", one)
			}
			primary.Kill()
			replica.Must(t, "replicaof", "no", "one")
			two := second.take(ctx)
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
