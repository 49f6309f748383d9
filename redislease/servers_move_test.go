package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/redislease"
)

// followed checks that a Store has left a server: a watch of it is lost, a new watch gets the signals of
// the new server, which a person sends by hand.
func followed(t *testing.T, s *redislease.Store, lost <-chan struct{}, now *redisserver.Server) {
	t.Helper()
	if !within(lost, false) {
		t.Error("the watch of the old server is not lost")
	}
	signals := watch(t, s, "x")
	now.Must(t, "publish", s.Channel("x"), "x")
	if !within(signals, true) {
		t.Error("no signal from the new server")
	}
}

// A proxy sends only new connections to the new primary. The old one lives on and refuses requests. The
// next request reaches the new primary, and so does the next watch.
func TestTheNextRequestGoesToTheNewPrimary(t *testing.T) {
	t.Parallel()
	for what, demote := range map[string]func(t *testing.T, p *pair){
		"READONLY": func(t *testing.T, p *pair) {
			p.primary.Must(t, "replicaof", "127.0.0.1", p.replica.Port())
		},
		"NOREPLICAS": func(t *testing.T, p *pair) {
			p.primary.Must(t, "config", "set", "min-replicas-to-write", "1")
			eventually(t, "the primary has noticed that its replica is gone", func(ctx context.Context) error {
				if _, err := p.primary.Do(ctx, "set", "y", "1"); err == nil {
					return errors.New("it still writes")
				}
				return nil
			})
		},
		"MASTERDOWN": func(t *testing.T, p *pair) {
			p.primary.Must(t, "config", "set", "replica-serve-stale-data", "no")
			p.primary.Must(t, "replicaof", "127.0.0.1", "1")
		},
		"CLUSTERDOWN": nil,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			s := store(t, client(t, p.front.Addr()), nil)
			if demote == nil { // the old server is of a cluster, and has never had the lease
				other := ownServer(t, "--cluster-enabled", "yes")
				p.front.Target(other.Addr())
				if _, err := s.Load(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), what) {
					t.Fatalf("no %s: %v", what, err)
				}
				p.front.Target(p.primary.Addr())
				do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
				return
			}
			held := do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			lost := watch(t, s, "x")
			p.replica.Await(t, "1", "exists", s.Key("x"))
			p.replica.Must(t, "replicaof", "no", "one")
			demote(t, p)
			p.front.Target(p.replica.Addr())
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // RequestTimeout
			defer cancel()
			res, err := s.Authority().Do(ctx, "x", renew(idA))
			if err != nil || res.Record.Epoch != held.Record.Epoch {
				t.Fatalf("the next renewal: %v, %v", res.Record, err)
			}
			followed(t, s, lost, p.replica)
		})
	}
}

// A sentinel has promoted the replica, but the old primary cannot be demoted and still accepts writes. A
// Store of redis.NewFailoverClient moves to the new primary: a waiter that sends no requests too.
func TestSentinelLeavesAPrimaryThatLivesOn(t *testing.T) {
	t.Parallel()
	primary := ownServer(t, "--rename-command", "REPLICAOF", "NO1", "--rename-command", "SLAVEOF", "NO2")
	replica := ownServer(t, "--replicaof", "127.0.0.1 "+primary.Port())
	sentinel := newSentinels(t, primary, 1)[0]
	open := func() *redislease.Store {
		return store(t, failoverClient(t, &redis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}}), nil)
	}
	holder, waiter := open(), open()
	do(t, holder.Authority(), "x", acquire(idA, time.Minute), 0)
	lost := watch(t, waiter, "x")
	replica.Await(t, "1", "exists", holder.Key("x"))
	eventually(t, "the sentinel promotes the replica", func(ctx context.Context) error {
		_, _ = sentinel.Do(ctx, "sentinel", "failover", "leases")
		at, err := sentinel.Do(ctx, "sentinel", "get-master-addr-by-name", "leases")
		if err == nil && fmt.Sprint(at) != "[127.0.0.1 "+replica.Port()+"]" {
			err = errors.New("not yet")
		}
		return err
	})
	began, version := time.Now(), replica.Must(t, "hget", holder.Key("x"), "version")
	for version == replica.Must(t, "hget", holder.Key("x"), "version") {
		do(t, holder.Authority(), "x", renew(idA), 0)
		if time.Since(began) > 5*time.Second {
			t.Fatal("after 5s the holder still renews at the old primary")
		}
		time.Sleep(50 * time.Millisecond) // a real engine
	}
	t.Logf("the holder renews at the new primary after %v", time.Since(began).Round(time.Millisecond))
	followed(t, waiter, lost, replica)
}

// The eviction policy of a running server is changed. A Store that is connected already stops relying on
// the server within seconds, and works again when the policy is corrected.
func TestEvictionPolicyIsCheckedAgain(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	a := store(t, client(t, server.Addr()), nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	server.Must(t, "config", "set", "maxmemory-policy", "allkeys-random")
	began := time.Now()
	for {
		_, err := a.Do(t.Context(), "x", renew(idA))
		if errors.As(err, new(*lease.PermanentError)) && strings.Contains(err.Error(), "maxmemory-policy allkeys-random") {
			break
		}
		if err != nil || time.Since(began) > 5*time.Second {
			t.Fatalf("renewals after %v: %v", time.Since(began), err)
		}
		time.Sleep(20 * time.Millisecond) // a real engine
	}
	for _, a := range []lease.Authority{a, store(t, client(t, server.Addr()), nil).Authority()} {
		if _, err := a.Do(t.Context(), "y", acquire(idA, time.Minute)); !errors.As(err, new(*lease.PermanentError)) {
			t.Errorf("an acquire at a server that evicts: %v", err)
		}
	}
	do(t, store(t, client(t, server.Addr()), &redislease.Options{AssumeNoEviction: true}).Authority(), "y", acquire(idA, time.Minute), 0)
	server.Must(t, "config", "set", "maxmemory-policy", "noeviction")
	do(t, a, "x", renew(idA), 0)
}

// A client of a single server shows only a part of a cluster's leases, so List is refused.
func TestListOfOneServerOfACluster(t *testing.T) {
	t.Parallel()
	s := store(t, client(t, ownServer(t, "--cluster-enabled", "yes").Addr()), nil)
	for _, err := range s.List(t.Context(), "") {
		says(t, err, true, "redis.ClusterClient")
		return
	}
	t.Error("an empty list")
}
